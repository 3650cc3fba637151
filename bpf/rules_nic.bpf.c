/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/* The rules' program with what only the driver knows (Linux 6.8): the NIC's stamp, and the tag that it took off. */
#define RULES_NIC
#include "rules.bpf.c"
