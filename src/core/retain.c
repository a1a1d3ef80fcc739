/* SPDX-License-Identifier: MIT */
#include "core/retain.h"

#include <string.h>

#include "base/utf8.h"
#include "core/text.h"
#include "errand.h"

static bool ends_with(const char *text, size_t len, const char *word, size_t word_len)
{
	return len >= word_len && memcmp(text + len - word_len, word, word_len) == 0;
}

static int put_cut(struct buf *out, const struct fit *f, size_t limit)
{
	size_t word_len = strlen(f->word), kept;
	struct buf fixed;

	buf_init_try(&fixed, word_len + 1 + f->suffix_len, out->mem);
	fixed.is_sure = out->is_sure;
	if (!ends_with(f->text, f->len, f->word, word_len)) {
		(void)buf_addc(&fixed, '\n');
		(void)buf_adds(&fixed, f->word);
	}
	(void)buf_add(&fixed, f->suffix, f->suffix_len);
	if (fixed.len >= limit) {
		kept = utf8_tail(buf_text(&fixed), fixed.len, limit);
		(void)buf_add(out, buf_text(&fixed) + fixed.len - kept, kept);
	} else {
		kept = utf8_tail(f->text, f->len, limit - fixed.len);
		(void)buf_add(out, f->text + f->len - kept, kept);
		(void)buf_add(out, buf_text(&fixed), fixed.len);
	}
	if (buf_error(&fixed))
		out->error = buf_error(&fixed);
	buf_release(&fixed);
	return buf_error(out);
}

int fit_put(struct buf *out, const struct fit *f)
{
	if (f->limit != 0 && f->len + f->suffix_len > f->limit)
		return put_cut(out, f, (size_t)f->limit);
	(void)buf_add(out, f->text, f->len);
	return buf_add(out, f->suffix, f->suffix_len);
}

/* ---- for producers ---- */

int errand_retain(int tail, size_t max, const char *text, size_t len,
		  const char **ret_start, size_t *ret_len)
{
	size_t kept;

	if (!text || !ret_start || !ret_len)
		return ERRAND_EARG;
	len = str_length(text, len);
	kept = tail ? utf8_tail(text, len, max) : utf8_head(text, len, max);
	*ret_start = tail ? text + len - kept : text;
	*ret_len = kept;
	return 0;
}

int errand_fit(const char *text, size_t len, const char *suffix, const char *word,
	       size_t limit, errand_text **ret)
{
	struct fit f = {.suffix = suffix, .word = word, .limit = limit};
	struct buf clean, out;
	int rc = 0;

	if (!text || !suffix || !word || !ret)
		return ERRAND_EARG;
	f.text = text;
	f.len = str_length(text, len);
	f.suffix_len = strlen(suffix);
	buf_init_try(&clean, SIZE_MAX / 4, NULL);
	if (!utf8_valid(f.text, f.len)) {
		rc = rc_of_base(utf8_clean(&clean, f.text, f.len));
		f.text = buf_text(&clean);
		f.len = clean.len;
	}
	buf_init_try(&out, SIZE_MAX / 4, NULL);
	if (rc == 0)
		(void)fit_put(&out, &f);
	buf_release(&clean);
	return rc == 0 ? text_take(&out, ret, NULL) : rc;
}
