/* Reading numbers from text, the same way in every locale.
 *
 * A number is decimal: sign, digits with at most one '.', exponent. Nothing may stand before or behind it,
 * and no other notation (hexadecimal, digit groups) is one. */
#ifndef PSLD_BASE_TEXT_H
#define PSLD_BASE_TEXT_H

#include <stdint.h>

/* Each returns 1 when the whole of `text` is what it asks for, else 0 and leaves the result alone. */

/* Also takes inf, infinity, .inf and nan, .nan in any case, and what overflows as infinity: a caller that
 * wants a finite number can so tell "not finite" from "not a number". */
int psld_text_number(const char *text, double *number);
/* Decimal digits with a sign or none, within int64_t. */
int psld_text_integer(const char *text, int64_t *integer);

/* Whether two texts are the same but for the case of ASCII letters. */
int psld_text_same(const char *a, const char *b);

#endif
