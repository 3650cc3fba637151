/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Fields that vary, as people type them:
 *
 *     FIELD=counter:FROM-TO[/STEP]          1000-2000, 10.0.0.1-10.0.0.254, 10.0.0.0/24
 *     FIELD=random:FROM-TO[/STEP][@SEED]    the same values in a pseudo-random order, each once
 *     FIELD=table:V,V...                    as given; table:@FILE has one a line
 *
 * each with *N behind it: the value changes after N probes. Without values: all that the field holds.
 */
#ifndef KTRXER_CLI_SEND_VARY_H
#define KTRXER_CLI_SEND_VARY_H

#include "opt.h"

enum { VARY_FIELDS = 7, VARY_TABLE_MAX = 1 << 20, VARY_FILE_MAX = 64 << 20 };

struct vary {
	struct ktx_vary fields[VARY_FIELDS];
	uint8_t *tables[VARY_FIELDS];
	struct ktrxer_addr first[VARY_FIELDS]; /* of a range of addresses; family 0: none */
	int count;
};

/*
 * `family`: of the addresses. 0, or a negative errno with a line that names the field and what to type. vary_free() is
 * right in any case.
 */
int vary_add(struct vary *vary, const char *text, uint8_t family, struct ktrxer_error *err);
int vary_add_all(struct vary *vary, const struct opt_list *list, uint8_t family, struct ktrxer_error *err);
void vary_free(struct vary *vary);

/* Destinations that vary are destinations: each must be one that may be flooded, as HOST itself. */
int vary_guard(const struct vary *vary, const struct opt_rate *rate, bool flood, struct ktrxer_error *err);
/* IPv6 ranges count the low 64 bits: their network must be the one that the frame has. */
int vary_networks(const struct vary *vary, const struct ktrxer_addr *source, const struct ktrxer_addr *destination,
		  struct ktrxer_error *err);
bool vary_has(const struct vary *vary, enum ktx_field field);

#endif
