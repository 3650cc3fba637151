/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* How a named engine, or `auto`, is chosen from a list of engines. */
#include "busy.h"
#include "engine.h"
#include "options.h"
#include "tx.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

bool ktx_engine_is_auto(const char *name)
{
	return !name || !*name || strcmp(name, "auto") == 0;
}

const struct ktx_engine *ktx_engine_find(const struct ktx_engine *const *list, const char *name)
{
	for (int i = 0; list[i]; i++)
		if (strcmp(list[i]->name, name) == 0)
			return list[i];
	return NULL;
}

static void engine_try(const struct ktx_engine *engine, const struct ktrxer_device *device,
		       struct ktx_engine_info *info)
{
	memset(info, 0, sizeof *info);
	info->name = engine->name;
	info->summary = engine->summary;
	if (ktx_engine_needs_device(engine) && !device) {
		snprintf(info->reason, sizeof info->reason, "needs a device: name one (`ip link` lists them)");
		return;
	}
	info->available = engine->probe(device, info) == 0;
	info->features |= engine->can;
	if (info->available && engine->nic_stamps && ktrxer_phc_offered(device->name, PHC_SENT))
		info->features |= KTX_CAN_NIC_STAMP;
	if (!info->available && !info->reason[0])
		snprintf(info->reason, sizeof info->reason, "does not work here");
}

int ktx_engine_try_all(const struct ktx_engine *const *list, struct ktx_engine_info *engines, size_t size, int max,
		       const char *device_name)
{
	struct ktrxer_device device;
	struct ktrxer_error err;
	bool found = device_name && ktrxer_device_get(&device, device_name, &err) == 0;
	int n = 0;

	if (max < 0 || !size || (max && !engines))
		return -EINVAL;
	for (; list[n]; n++) {
		struct ktx_engine_info info = { .name = list[n]->name, .summary = list[n]->summary };

		if (n >= max)
			continue;
		if (device_name && !found)
			memcpy(info.reason, err.text, sizeof info.reason);
		else
			engine_try(list[n], found ? &device : NULL, &info);
		ktrxer_result_write((uint8_t *)engines + (size_t)n * size, size, &info, sizeof info);
	}
	return n;
}

const struct ktx_engine *ktx_engine_choose(const struct ktx_engine *const *list, const struct ktrxer_device *device,
					   const struct ktx_options *options, uint32_t frame_size,
					   const struct ktx_engine *refused, char reason[KTRXER_ERROR_TEXT],
					   struct ktrxer_error *err)
{
	const enum ktx_purpose purpose = options->purpose;
	const struct ktx_engine *best = NULL;
	char passed[2 * KTRXER_ERROR_TEXT] = "";

	for (int i = 0; list[i]; i++) {
		const struct ktx_engine *engine = list[i];
		struct ktx_engine_info info;
		bool busy = false;
		int rank = purpose == KTX_FOR_RATE ? engine->rank_rate : engine->rank_timing;

		if (best && rank <= (purpose == KTX_FOR_RATE ? best->rank_rate : best->rank_timing))
			continue;
		if (engine == refused) {
			info.available = false;
			memcpy(info.reason, err->text, sizeof info.reason);
		} else {
			engine_try(engine, device, &info);
		}
		if (info.available && engine->frame_max && frame_size > engine->frame_max) {
			info.available = false;
			snprintf(info.reason, sizeof info.reason, "frames of %u bytes, its longest is %u", frame_size,
				 engine->frame_max);
		}
		if (info.available && options->send_time && !(info.features & KTX_CAN_SEND_TIME)) {
			info.available = false;
			snprintf(info.reason, sizeof info.reason, "it cannot write the send time into frames");
		}
		/*
		 * `auto` does not choose an engine that would compete with other tasks for the processor that it polls.
		 */
		busy = info.available && engine->polls && purpose == KTX_FOR_RATE && !ktrxer_processor_free();
		if (busy) {
			info.available = false;
			snprintf(info.reason, sizeof info.reason, "it polls a whole processor, and all are busy now");
		}
		if (info.available)
			best = engine;
		else if (!passed[0] || busy) /* of all the one that would have been taken */
			snprintf(passed, sizeof passed, "%.32s: %s", engine->name, info.reason);
	}
	if (!best) {
		ktrxer_fail(err, -EOPNOTSUPP, "no engine works here; %s", passed);
		return NULL;
	}
	ktrxer_text(reason, KTRXER_ERROR_TEXT, "%s%s%s%s", purpose == KTX_FOR_RATE ? best->why_rate : best->why_timing,
		    passed[0] ? " (" : "", passed, passed[0] ? ")" : "");
	return best;
}
