/* Names and numbers in text.
 *
 * Numbers are read and written the same way in every locale. A number is decimal: sign, digits with at most one '.',
 * exponent. Nothing may precede or follow it, and other notations (hexadecimal, digit groups) are refused. */
#ifndef PSLD_BASE_TEXT_H
#define PSLD_BASE_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* Both return 1 if the whole text is a number of the kind; otherwise they return 0 and leave the result alone. */

/* Also accepts inf, infinity, .inf, nan and .nan in any case, and gives infinity on overflow. So a caller that wants
 * a finite number can tell "not finite" from "not a number". */
int psld_text_number(const char *text, double *number);
/* An optional sign and decimal digits, within int64_t. */
int psld_text_integer(const char *text, int64_t *integer);

/* snprintf with '.' as the decimal point in every locale: for files and keys that others read back. */
int psld_text_print(char *to, size_t size, const char *format, ...) PSLD_PRINTF(3, 4);

/* Writes ": did you mean "frog"?" for the nearest of the words, or "" if none is near. Returns `text`. */
enum { PSLD_SUGGESTION_SIZE = 96 };
const char *psld_text_suggest(const char *word, const char *const *words, size_t count,
                              char text[PSLD_SUGGESTION_SIZE]);
/* The same for words in one text, separated by '|'. */
const char *psld_text_suggest_from(const char *word, const char *words, char text[PSLD_SUGGESTION_SIZE]);

/* The position of a word in a text of words, separated by '|'; the case of letters does not count. -1: it is not there. */
int psld_text_choice(const char *word, const char *words);
/* Writes "a|b|c" as "a, b or c". Returns `text`. */
enum { PSLD_CHOICES_SIZE = 192 };
const char *psld_text_choices(const char *words, char text[PSLD_CHOICES_SIZE]);

/* Fails with "what: expected one of a, b, c, found "word": did you mean ...?". A NULL `word` is shown as "". */
psld_status psld_text_fail_choice(psld_status status, const char *what, const char *word, const char *const *words,
                                  size_t count);
/* Whether `text`, which may be NULL, equals `word`. */
int psld_text_is(const char *text, const char *word);
/* Fails if a caller's list has fewer texts than the `count` it states. */
psld_status psld_text_list_check(const char *what, const char *const *list, size_t count);
/* Whether two texts are equal, ignoring the case of ASCII letters. */
int psld_text_same(const char *a, const char *b);
/* Whether a text ends in another. */
int psld_text_ends_in(const char *text, const char *ending);

/* The length in bytes of the UTF-8 sequence at the beginning of a text, and its code point; 0 if it is not UTF-8. */
size_t psld_text_utf8(const char *text, unsigned long *code);

#endif
