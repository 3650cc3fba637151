/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The services of this program. SERVICE_LIST(X) is X(name, help of its option) for each. */
#ifndef KTRXER_CLI_SERVICES_H
#define KTRXER_CLI_SERVICES_H

#include "service.h"
#include "service_list.h"

#define SERVICE_INDEX(name, help) SERVICE_##name,

enum { SERVICE_LIST(SERVICE_INDEX) SERVICES };

extern const struct service *const service_table[]; /* NULL ends it */

#endif
