/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/* The program of the rules with the driver's metadata (Linux 6.8): the NIC's stamp, and the tag that it removed. */
#define RULES_NIC
#include "rules.bpf.c"
