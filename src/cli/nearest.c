/* SPDX-License-Identifier: MIT */
#include "cli/nearest.h"

#include <string.h>

/* Words of ours are shorter. */
#define MAX_WORD 32
/* Of so many letters one may be wrong. */
#define LETTERS_PER_SLIP 3
#define MAX_DISTANCE 2

static size_t smaller(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Letters to put in, leave out, replace or exchange with the next. */
static size_t distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
	size_t d[MAX_WORD + 1][MAX_WORD + 1];

	for (size_t i = 0; i <= a_len; i++)
		d[i][0] = i;
	for (size_t j = 0; j <= b_len; j++)
		d[0][j] = j;
	for (size_t i = 1; i <= a_len; i++)
		for (size_t j = 1; j <= b_len; j++) {
			d[i][j] = smaller(smaller(d[i - 1][j], d[i][j - 1]) + 1,
					  d[i - 1][j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				d[i][j] = smaller(d[i][j], d[i - 2][j - 2] + 1);
		}
	return d[a_len][b_len];
}

void nearest_try(struct nearest *n, const char *word)
{
	size_t len = strlen(word), d;

	if (n->len > MAX_WORD || len > MAX_WORD || n->len < 3)
		return;
	d = distance(n->typed, n->len, word, len);
	if (len > n->len && strncmp(n->typed, word, n->len) == 0)
		d = 1; /* only begun */
	if (d > n->len / LETTERS_PER_SLIP || d > MAX_DISTANCE ||
	    (n->found && d >= n->distance))
		return;
	n->found = word;
	n->distance = d;
}
