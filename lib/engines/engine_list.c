/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The engines of this build: the only place that names them all. */
#include "engine.h"

/* clang-format off */

extern const struct ktx_engine ktx_engine_live;
extern const struct ktx_engine ktx_engine_module;
extern const struct ktx_engine ktx_engine_packet;
extern const struct ktx_engine ktx_engine_raw;
extern const struct ktx_engine ktx_engine_txtime;
extern const struct ktx_engine ktx_engine_udp;
extern const struct ktx_engine ktx_engine_xsk;

static const struct ktx_engine *const ktx_engine_table[] = {
	&ktx_engine_packet,
	&ktx_engine_xsk,
	&ktx_engine_live,
	&ktx_engine_module,
	&ktx_engine_txtime,
	&ktx_engine_raw,
	&ktx_engine_udp,
	NULL,
};
/* clang-format on */

int ktx_engines_sized(struct ktx_engine_info *engines, size_t size, int max, const char *device_name)
{
	return ktx_engine_try_all(ktx_engine_table, engines, size, max, device_name);
}

bool ktx_engine_by_stack(const char *name, bool stack_needed)
{
	const struct ktx_engine *engine = ktx_engine_is_auto(name) ? NULL : ktx_engine_find(ktx_engine_table, name);

	return engine ? engine->can & KTX_CAN_HOST_STACK : ktx_engine_is_auto(name) && stack_needed;
}

int ktx_open(struct ktx **out, const struct ktx_options *options, struct ktrxer_error *err)
{
	return ktx_open_of(out, ktx_engine_table, options, err);
}
