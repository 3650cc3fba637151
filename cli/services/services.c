/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "services.h"

#include <stddef.h>

#define DECLARED(name, help) extern const struct service service_##name;
#define ROW(name, help) &service_##name,

SERVICE_LIST(DECLARED)

const struct service *const service_table[] = { SERVICE_LIST(ROW) NULL };
