/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "shared_options.h"

const char *const shared_models[] = { [MODEL_CONSTANT] = "constant", [MODEL_POISSON] = "poisson", NULL };
const char *const shared_engines[] = { "udp", "raw", "packet", "auto", NULL };
