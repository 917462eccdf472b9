/* Words and lists of them that callers give; numbers from text and into text, the same way in every locale.
 *
 * A number is decimal: sign, digits with at most one '.', exponent. Nothing may stand before or behind it,
 * and no other notation (hexadecimal, digit groups) is one. */
#ifndef PSLD_BASE_TEXT_H
#define PSLD_BASE_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* Each returns 1 when the whole of `text` is what it asks for, else 0 and leaves the result alone. */

/* Also takes inf, infinity, .inf and nan, .nan in any case, and what overflows as infinity: a caller that
 * wants a finite number can so tell "not finite" from "not a number". */
int psld_text_number(const char *text, double *number);
/* Decimal digits with a sign or none, within int64_t. */
int psld_text_integer(const char *text, int64_t *integer);

/* As snprintf, with '.' in every number: for files and keys, which others read back. */
int psld_text_print(char *to, size_t size, const char *format, ...) PSLD_PRINTF(3, 4);

/* ": did you mean "frog"?" after psld_text_nearest, or "" where nothing is near. Returns `text`. */
enum { PSLD_SUGGESTION_SIZE = 96 };
const char *psld_text_suggest(const char *word, const char *const *words, size_t count,
                              char text[PSLD_SUGGESTION_SIZE]);
/* The same for words in one text, separated by '|'. */
const char *psld_text_suggest_from(const char *word, const char *words, char text[PSLD_SUGGESTION_SIZE]);

/* Fails with "what: expected one of a, b, c, found "word": did you mean ...?". A `word` of NULL is shown as "". */
psld_status psld_text_fail_choice(psld_status status, const char *what, const char *word, const char *const *words,
                                  size_t count);
/* Whether `text`, which may be NULL, is `word`. */
int psld_text_is(const char *text, const char *word);
/* Fails where a list that a caller gives has fewer texts than the `count` it says. */
psld_status psld_text_list_check(const char *what, const char *const *list, size_t count);
/* Whether two texts are the same but for the case of ASCII letters. */
int psld_text_same(const char *a, const char *b);
/* Whether a text ends in another. */
int psld_text_ends_in(const char *text, const char *ending);

/* Bytes of the UTF-8 sequence that a text begins with, and what it stands for; 0 when it is none. */
size_t psld_text_utf8(const char *text, unsigned long *code);

#endif
