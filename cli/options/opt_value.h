/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The parser's own tools: values into fields. Commands include opt.h. */
#ifndef KTRXER_CLI_OPT_VALUE_H
#define KTRXER_CLI_OPT_VALUE_H

#include "opt.h"

/* `text` into the option's field of the struct at `base`; err does not name the option. */
int opt_value_set(const struct opt *opt, void *base, const char *text, struct ktrxer_error *err);
int opt_choice_find(const char *const *choices, int *index, const char *text, struct ktrxer_error *err);
int opt_list_add(struct opt_list *list, const char *text, struct ktrxer_error *err);

#endif
