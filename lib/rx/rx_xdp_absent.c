/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A build without clang or libbpf has this file instead of rx_xdp.c. */
#include "rx.h"

#include "error.h"

#include <errno.h>

static int absent_open(struct krx_backend_state **out, const struct krx_backend_setup *setup, struct ktrxer_error *err)
{
	(void)out;
	(void)setup;
	return ktrxer_fail(err, -EOPNOTSUPP,
			   "this ktrxer was built without XDP rules (clang and libbpf were missing): the back end "
			   "'nftables' drops, too");
}

const struct krx_backend krx_backend_xdp = {
	.name = "xdp",
	.ops = 1u << KRX_CAPTURE | 1u << KRX_DROP | 1u << KRX_CAPTURE_DROP | 1u << KRX_FORWARD,
	.why = "a rule drops",
	.open = absent_open,
};
