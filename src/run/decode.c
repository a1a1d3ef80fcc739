/* SPDX-License-Identifier: MIT */
#include "run/decode.h"

#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "base/utf8.h"

#define ESC 0x1b
#define BEL 0x07
#define CAN 0x18
#define SUB 0x1a
#define DEL 0x7f

/* The longest that one input character becomes. */
#define MAX_PUT 4

static const char visible_nul[] = "\xe2\x90\x80";
static const char replacement[] = "\xef\xbf\xbd";

struct decoder {
	struct buf *out;
	const uint8_t *in;
	size_t at, len;
	size_t base;       /* where the text of this call begins in @out */
	size_t line;       /* where its current line begins */
	bool is_rewinding; /* after a CR: the next character begins the line again */
	bool is_final;
	bool is_terminal;
	struct decode_cut *cut;
	bool has_cut, has_line_cut;
};

/* What an element came to. */
enum step {
	STEP_TAKEN,
	STEP_WAITS, /* it is not whole yet */
	STEP_FULL,
};

/* ---- output ---- */

static void note_cut(struct decoder *d)
{
	size_t text = d->out->len - d->base;

	if (!d->cut || text < d->cut->want)
		return;
	if (!d->has_cut) {
		d->has_cut = true;
		d->cut->raw = d->at;
		d->cut->text = text;
	}
	if (!d->has_line_cut && d->line == d->out->len) {
		d->has_line_cut = true;
		d->cut->line_raw = d->at;
		d->cut->line_text = text;
	}
}

/* The place that was found may have been taken back. */
static void shorten(struct decoder *d, size_t len)
{
	size_t text = len - d->base;

	buf_cut(d->out, len);
	if (!d->has_cut || d->cut->text <= text)
		return;
	d->has_cut = text >= d->cut->want;
	d->cut->raw = d->at;
	d->cut->text = text;
}

static void rewind_line(struct decoder *d)
{
	if (d->is_rewinding)
		shorten(d, d->line);
	d->is_rewinding = false;
}

static enum step put(struct decoder *d, const char *bytes, size_t n, size_t from)
{
	rewind_line(d);
	if (buf_room(d->out) < n || buf_add(d->out, bytes, n) != 0)
		return STEP_FULL;
	d->at += from;
	note_cut(d);
	return STEP_TAKEN;
}

static enum step skip(struct decoder *d, size_t n)
{
	d->at += n;
	return STEP_TAKEN;
}

/* What is written from here on takes the place of the line. */
static enum step return_carriage(struct decoder *d, size_t n)
{
	if (d->is_terminal)
		return put(d, "\r", 1, n);
	d->is_rewinding = true;
	return skip(d, n);
}

/* ---- escapes ---- */

/*
 * All finders: the length of the whole escape at @at, BROKEN if it is none, or 0: its end
 * is not there yet. Of a broken one only the introducer goes, since the rest is text that
 * somebody wants to read. A line's end breaks all of them, so a line begins cleanly.
 */
#define BROKEN SIZE_MAX

static size_t left(const struct decoder *d)
{
	return d->len - d->at;
}

/* How many of the bytes from @n on are in [@from, @to]. */
static size_t count_in(const struct decoder *d, size_t n, uint8_t from, uint8_t to)
{
	size_t first = n;

	while (n < left(d) && d->in[d->at + n] >= from && d->in[d->at + n] <= to)
		n++;
	return n - first;
}

/* The last byte of an escape, at @n. */
static size_t find_final(const struct decoder *d, size_t n, uint8_t from)
{
	if (n > DECODE_ESCAPE_MAX)
		return BROKEN;
	if (n == left(d))
		return 0;
	return d->in[d->at + n] >= from && d->in[d->at + n] < DEL ? n + 1 : BROKEN;
}

/* ESC [ or U+009B: parameters, intermediates, one final byte. */
static size_t find_csi(const struct decoder *d, size_t intro)
{
	size_t n = intro + count_in(d, intro, 0x30, 0x3f);

	return find_final(d, n + count_in(d, n, 0x20, 0x2f), 0x40);
}

/* ESC ( B and its kind: intermediates and one more. */
static size_t find_short(const struct decoder *d)
{
	return find_final(d, 1 + count_in(d, 1, 0x20, 0x2f), 0x30);
}

/* @p: a control of two bytes, ESC and a letter or U+0080 to U+009F. ST is the regular end,
 * any other one begins something new. */
static size_t end_at(const uint8_t *p, size_t n)
{
	return p[1] == (p[0] == ESC ? '\\' : 0x9c) ? n + 2 : BROKEN;
}

static bool is_two_bytes(const uint8_t *p)
{
	return p[0] == ESC || (p[0] == 0xc2 && p[1] >= 0x80 && p[1] < 0xa0);
}

/* OSC, DCS and their kind: up to BEL or ST, or to CAN or SUB, which call it off. */
static size_t find_string(const struct decoder *d, size_t intro)
{
	const uint8_t *p = d->in + d->at;

	for (size_t n = intro; n < left(d); n++) {
		if (n > DECODE_ESCAPE_MAX)
			return BROKEN;
		if (p[n] == BEL || p[n] == CAN || p[n] == SUB)
			return n + 1;
		if (p[n] < 0x20 && p[n] != ESC)
			return BROKEN;
		if (n + 1 < left(d) && is_two_bytes(p + n))
			return end_at(p + n, n);
	}
	return 0;
}

static bool begins_string(uint32_t c)
{
	return c == ']' || c == 'P' || c == 'X' || c == '^' || c == '_';
}

/* "Cursor to the first column" is a carriage return by another name. */
static bool is_to_first_column(const uint8_t *p, size_t intro, size_t n)
{
	if (p[n - 1] != 'G')
		return false;
	return n == intro + 1 || (n == intro + 2 && (p[intro] == '0' || p[intro] == '1'));
}

/* @kind: the character that follows ESC; @intro: the bytes of both. */
static enum step take_escape(struct decoder *d, uint32_t kind, size_t intro)
{
	size_t n;

	if (kind == '[') {
		n = find_csi(d, intro);
	} else if (begins_string(kind)) {
		n = find_string(d, intro);
	} else {
		n = find_short(d);
		intro = 1;
	}
	if (n == 0 && !d->is_final)
		return STEP_WAITS;
	if (n == 0 || n == BROKEN)
		return skip(d, intro);
	if (kind != '[' || !is_to_first_column(d->in + d->at, intro, n))
		return skip(d, n);
	return return_carriage(d, n);
}

static enum step take_esc(struct decoder *d)
{
	if (left(d) == 1)
		return d->is_final ? skip(d, 1) : STEP_WAITS;
	return take_escape(d, d->in[d->at + 1], 2);
}

/* ---- controls ---- */

static enum step take_newline(struct decoder *d, size_t n)
{
	d->is_rewinding = false;
	if (buf_room(d->out) < 1 || buf_addc(d->out, '\n') != 0)
		return STEP_FULL;
	d->at += n;
	d->line = d->out->len;
	note_cut(d);
	return STEP_TAKEN;
}

static enum step take_return(struct decoder *d)
{
	if (left(d) == 1 && !d->is_final && !d->is_terminal)
		return STEP_WAITS;
	if (left(d) > 1 && d->in[d->at + 1] == '\n' && !d->is_terminal)
		return take_newline(d, 2);
	return return_carriage(d, 1);
}

static enum step take_backspace(struct decoder *d)
{
	size_t len = d->out->len;

	if (d->is_terminal)
		return put(d, "\b", 1, 1);
	if (len > d->line && !d->is_rewinding) {
		len--;
		while (len > d->line && ((uint8_t)d->out->data[len] & 0xc0) == 0x80)
			len--;
		shorten(d, len);
	}
	return skip(d, 1);
}

static enum step take_nuls(struct decoder *d)
{
	size_t n = 1;

	while (n < left(d) && d->in[d->at + n] == 0)
		n++;
	return put(d, visible_nul, sizeof(visible_nul) - 1, n);
}

static enum step take_control(struct decoder *d)
{
	switch (d->in[d->at]) {
	case 0:
		return take_nuls(d);
	case '\t':
		return put(d, "\t", 1, 1);
	case '\n':
		return take_newline(d, 1);
	case '\r':
		return take_return(d);
	case '\b':
		return take_backspace(d);
	case ESC:
		return take_esc(d);
	default:
		return skip(d, 1);
	}
}

/* ---- characters ---- */

static bool is_plain(uint8_t c)
{
	return c >= 0x20 && c < DEL;
}

/* Stops at @want of the cut, so that its place is exact. */
static enum step take_plain(struct decoder *d)
{
	size_t n = 1, room, text;

	rewind_line(d);
	room = buf_room(d->out);
	text = d->out->len - d->base;
	if (d->cut && text < d->cut->want && d->cut->want - text < room)
		room = d->cut->want - text;
	while (n < room && n < left(d) && is_plain(d->in[d->at + n]))
		n++;
	return put(d, (const char *)d->in + d->at, n, n);
}

/* U+0080 to U+009F: the eight-bit forms of ESC and a letter. */
static enum step take_c1(struct decoder *d, uint32_t c)
{
	uint32_t kind = c - 0x40;

	if (kind == '[' || begins_string(kind))
		return take_escape(d, kind, 2);
	return skip(d, 2);
}

static enum step take_character(struct decoder *d)
{
	const char *p = (const char *)d->in + d->at;
	uint32_t c;
	size_t bad;
	int n = utf8_decode(p, left(d), &c, &bad);

	if (n > 0 && c >= 0x80 && c < 0xa0)
		return take_c1(d, c);
	if (n > 0)
		return put(d, p, (size_t)n, (size_t)n);
	if (n < 0) {
		if (!d->is_final)
			return STEP_WAITS;
		bad = left(d);
	}
	return put(d, replacement, sizeof(replacement) - 1, bad);
}

static enum step take(struct decoder *d)
{
	uint8_t c = d->in[d->at];

	if (is_plain(c))
		return take_plain(d);
	if (c < 0x20 || c == DEL)
		return take_control(d);
	return take_character(d);
}

static struct decoder decoder_of(struct buf *out, const char *raw, size_t len,
				 bool is_final)
{
	return (struct decoder){
		.out = out,
		.in = (const uint8_t *)raw,
		.len = len,
		.base = out->len,
		.line = out->len,
		.is_final = is_final,
	};
}

static void take_all(struct decoder *d)
{
	while (d->at < d->len && buf_room(d->out) >= MAX_PUT && take(d) == STEP_TAKEN)
		;
}

size_t decode(struct buf *out, const char *raw, size_t len, bool is_final,
	      struct decode_cut *cut)
{
	struct decoder d = decoder_of(out, raw, len, is_final);

	d.cut = cut;
	take_all(&d);
	if (cut && !d.has_cut) {
		cut->raw = d.at;
		cut->text = out->len - d.base;
	}
	if (cut && !d.has_line_cut) {
		cut->line_raw = d.at;
		cut->line_text = out->len - d.base;
	}
	return d.at;
}

size_t decode_terminal(struct buf *out, const char *raw, size_t len, bool is_final)
{
	struct decoder d = decoder_of(out, raw, len, is_final);

	d.is_terminal = true;
	take_all(&d);
	return d.at;
}
