/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "live_program.h"

#include "live_bpf.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <sys/mman.h>

extern const unsigned char ktrxer_live_object[];
extern const size_t ktrxer_live_object_size;

#define LINE 64

/* An odd number of cache lines: slots of an even one would share few sets of the cache. */
static uint32_t stride_of(uint32_t frame_size)
{
	uint32_t lines = ((uint32_t)sizeof(struct live_slot) + frame_size + LINE - 1) / LINE;

	return (lines | 1) * LINE;
}

static int program_shape(struct live_program *program, const struct live_setup *setup)
{
	/* clang-format off */
	const struct live_config config = {
		.late_most_ns = setup->late_ns, .retry_ns = setup->retry_ns,
		.mask = program->mask, .frame_most = setup->frame_size,
		.skips = setup->late == KTX_LATE_SKIP, .shifts = setup->late == KTX_LATE_SHIFT,
		.times = setup->times, .traced = program->traced,
	};
	/* clang-format on */
	int rc = ktrxer_live_bpf_constants(program->object, &config, sizeof config);

	if (rc == 0)
		rc = bpf_map__set_max_entries(ktrxer_live_bpf_map(program->object, "slots"), setup->slots);
	if (rc == 0)
		rc = bpf_map__set_value_size(ktrxer_live_bpf_map(program->object, "slots"), program->stride);
	if (rc == 0)
		rc = bpf_map__set_max_entries(ktrxer_live_bpf_map(program->object, "ends"), setup->slots);
	return rc;
}

static int program_load(struct live_program *program, const struct live_setup *setup, struct ktrxer_error *err)
{
	int rc =
		ktrxer_live_bpf_open(&program->object, ktrxer_live_object, ktrxer_live_object_size, "ktrxer_live", err);

	if (rc == 0 && (rc = program_shape(program, setup)) < 0)
		rc = ktrxer_fail(err, rc, "the live program is not the one that this library was built with");
	return rc == 0 ? ktrxer_live_bpf_load(program->object, err) : rc;
}

static int program_map(struct live_program *program, const struct live_setup *setup, struct ktrxer_error *err)
{
	program->control_size = sizeof *program->control;
	program->ends_size = setup->slots * sizeof *program->ends;
	program->slots_size = (size_t)setup->slots * program->stride;
	program->control = ktrxer_live_bpf_mmap(program->object, "control", &program->control_size);
	program->ends = ktrxer_live_bpf_mmap(program->object, "ends", &program->ends_size);
	program->slots = ktrxer_live_bpf_mmap(program->object, "slots", &program->slots_size);
	if (program->control == MAP_FAILED || program->ends == MAP_FAILED || (void *)program->slots == MAP_FAILED)
		return ktrxer_fail(err, -ENOMEM, "the live engine's %zu KiB of slots cannot be mapped",
				   program->slots_size / 1024);
	return 0;
}

static int program_open(struct live_program *program, const struct live_setup *setup, bool traced,
			struct ktrxer_error *err)
{
	int rc;

	*program = (struct live_program){
		.mask = setup->slots - 1,
		.stride = stride_of(setup->frame_size),
		.frame_size = setup->frame_size,
		.traced = traced,
		.control = MAP_FAILED,
		.ends = MAP_FAILED,
		.slots = MAP_FAILED,
	};
	rc = program_load(program, setup, err);
	if (rc == 0)
		rc = program_map(program, setup, err);
	if (rc == 0)
		rc = ktrxer_live_bpf_aim(program->object, setup->device, err);
	if (rc < 0)
		return rc;
	program->workers[0] = bpf_program__fd(bpf_object__find_program_by_name(program->object, "live_worker0"));
	program->workers[1] = bpf_program__fd(bpf_object__find_program_by_name(program->object, "live_worker1"));
	return 0;
}

int ktrxer_live_program_open(struct live_program *program, const struct live_setup *setup, struct ktrxer_error *err)
{
	int rc = program_open(program, setup, true, err);

	if (rc == 0) {
		if (ktrxer_live_bpf_trace(program->object, "live_taken", "live_turned_back", program->links))
			return 0;
		/* Load a program that does not wait for reports of the driver, because there are none. */
		ktrxer_live_program_close(program);
		rc = program_open(program, setup, false, err);
	}
	if (rc < 0)
		ktrxer_live_program_close(program);
	return rc;
}

void ktrxer_live_program_close(struct live_program *program)
{
	if ((void *)program->slots != MAP_FAILED)
		munmap(program->slots, program->slots_size);
	if (program->ends != MAP_FAILED)
		munmap(program->ends, program->ends_size);
	if (program->control != MAP_FAILED)
		munmap(program->control, program->control_size);
	bpf_link__destroy(program->links[1]);
	bpf_link__destroy(program->links[0]);
	bpf_object__close(program->object);
}

int ktrxer_live_program_run(const struct live_program *program, int worker, uint32_t repeat, uint32_t batch,
			    uint32_t frame_size)
{
	uint8_t frame[LIVE_FRAME_MAX] = { 0 };

	return ktrxer_live_bpf_run(program->workers[worker], frame, frame_size, repeat, batch);
}

int ktrxer_live_program_try(const struct live_program *program, struct ktrxer_error *err)
{
	int rc;

	program->control->batch[0] = 1;
	rc = ktrxer_live_program_run(program, 0, 1, 1, 64);
	program->control->workers[0].runs = program->control->workers[0].left = 0;
	if (rc == 0)
		return 0;
	return ktrxer_fail(err, rc,
			   "this kernel does not run XDP programs with live frames (%m): it needs Linux 5.18; use the "
			   "packet engine");
}
