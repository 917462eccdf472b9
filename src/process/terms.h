/* Expressions: formulas of variables as users write them, their exact derivatives, and their values.
 *
 * A formula is a graph of terms. Each term is made once: equal formulas are the same term, and whatever a derivative
 * shares with its formula is computed once. Terms are numbered in an order in which operands come first. What is known
 * to be 0 or 1 is simplified away, so that a matrix entry is the term 0 if and only if it is written as nothing else.
 *
 * Nothing is executed but arithmetic. Length, depth and number of terms are bounded. */
#ifndef PSLD_PROCESS_TERMS_H
#define PSLD_PROCESS_TERMS_H

#include <stddef.h>

#include "base/status.h"

enum {
    PSLD_TERMS_DEPTH = 100,    /* nested parentheses, signs and powers of one text */
    PSLD_TERMS_LENGTH = 10000, /* bytes of one text */
    PSLD_TERMS_MOST = 200000,  /* terms of all formulas together */
};

typedef int psld_term; /* the number of a term in its graph; 0 is the number 0 */

typedef enum psld_term_kind {
    PSLD_TERM_NUMBER,
    PSLD_TERM_VARIABLE,
    PSLD_TERM_ADD,
    PSLD_TERM_SUBTRACT,
    PSLD_TERM_MULTIPLY,
    PSLD_TERM_DIVIDE,
    PSLD_TERM_POWER,
    PSLD_TERM_REPEATED, /* a to the power of a small whole number */
    PSLD_TERM_SQRT,     /* functions of one argument from here on: the table in terms.c */
    PSLD_TERM_EXP,
    PSLD_TERM_LOG,
    PSLD_TERM_SIN,
    PSLD_TERM_COS,
    PSLD_TERM_TANH,
    PSLD_TERM_ATAN,
    PSLD_TERM_SINH,
    PSLD_TERM_COSH,
    PSLD_TERM_KINDS
} psld_term_kind;

typedef struct psld_terms psld_terms;

psld_status psld_terms_create(psld_terms **terms);
void psld_terms_free(psld_terms *terms);
/* The first failure of what makes terms: no memory, too many of them, or a number that is not finite, such as 1 / 0.
 * After one the terms that are made mean nothing. */
psld_status psld_terms_status(const psld_terms *terms);
int psld_terms_count(const psld_terms *terms);

psld_term psld_term_number(psld_terms *terms, double number);
psld_term psld_term_variable(psld_terms *terms, int variable);
psld_term psld_term_add(psld_terms *terms, psld_term a, psld_term b);
psld_term psld_term_subtract(psld_terms *terms, psld_term a, psld_term b);
psld_term psld_term_multiply(psld_terms *terms, psld_term a, psld_term b);
psld_term psld_term_divide(psld_terms *terms, psld_term a, psld_term b);
psld_term psld_term_power(psld_terms *terms, psld_term a, psld_term b);
psld_term psld_term_function(psld_terms *terms, psld_term_kind kind, psld_term a);

/* Names that a text may use. */
typedef struct psld_term_names {
    size_t variable_count, constant_count;
    const char *const *variables;
    const int *indices; /* of the variables; NULL: 0, 1, ... */
    const char *const *constants;
    const double *values; /* of the constants */
} psld_term_names;

/* A text such as "x^4/8 + m^2/2": + - * / ^, parentheses, numbers, pi, names and the functions of psld_term_functions.
 * ^ binds more tightly than a sign before it and groups to the right. */
psld_status psld_terms_parse(psld_terms *terms, const char *text, const psld_term_names *names, psld_term *term);
/* "sqrt, exp, ..." */
const char *psld_term_functions(void);
/* Whether a text may be the name of a variable or constant: letters, digits and _, no function's and not pi. */
int psld_term_may_be_named(const char *name);

/* The derivatives of `count` terms by a variable. */
psld_status psld_terms_derive(psld_terms *terms, int variable, size_t count, const psld_term *of,
                              psld_term *derivative);

/* ---- Values ------------------------------------------------------------------------------------------------------ */

enum { PSLD_TERM_LANES = 32 }; /* points that are computed together */

/* The terms that some outputs need, in order. Immutable; shared between threads. */
typedef struct psld_formulas psld_formulas;

psld_status psld_formulas_create(const psld_terms *terms, size_t count, const psld_term *outputs,
                                 psld_formulas **formulas);
void psld_formulas_free(psld_formulas *formulas);
/* Doubles of scratch memory for one thread. */
size_t psld_formulas_scratch(const psld_formulas *formulas);
/* Must be called on scratch memory before it is used. */
void psld_formulas_prepare(const psld_formulas *formulas, double *scratch);
/* The values of all outputs at PSLD_TERM_LANES points: variables [.][PSLD_TERM_LANES]. Lanes do not influence each other. */
void psld_formulas_run(const psld_formulas *formulas, const double *variables, double *scratch);
/* After a run: output `index` at the points, [PSLD_TERM_LANES] in the scratch memory. */
const double *psld_formulas_output(const psld_formulas *formulas, const double *scratch, size_t index);

/* The inside, for the files terms*.c. */
typedef struct psld_term_node {
    psld_term_kind kind;
    psld_term a, b; /* operands; of VARIABLE its number in a; of REPEATED the power in b */
    double number;
} psld_term_node;
const psld_term_node *psld_terms_node(const psld_terms *terms, psld_term term);
/* Marks the terms that the marked ones of the first `count` are made of. */
void psld_terms_mark(const psld_terms *terms, int count, char *marked);
/* What a kind makes of numbers. */
double psld_term_value(psld_term_kind kind, double a, double b);
/* The function of that name; PSLD_TERM_KINDS: there is none. */
psld_term_kind psld_term_function_named(const char *name);

#endif
