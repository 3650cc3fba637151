/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "flow_ops.h"

#include "flow_tcp.h"
#include "flow_udp.h"

const struct flow_ops *flow_ops_of(const struct flow_spec *spec)
{
	return spec->udp ? &flow_udp_ops : &flow_tcp_ops;
}
