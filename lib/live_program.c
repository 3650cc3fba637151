/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "live_program.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef BPF_F_TEST_XDP_LIVE_FRAMES /* headers before Linux 5.18; the running kernel says whether it knows it */
#define BPF_F_TEST_XDP_LIVE_FRAMES (1U << 1)
#endif

extern const unsigned char live_object[];
extern const size_t live_object_size;

#define LINE 64

/* An odd number of cache lines: slots of an even one would share few sets of the cache. */
static uint32_t stride_of(uint32_t frame_size)
{
	uint32_t lines = ((uint32_t)sizeof(struct live_slot) + frame_size + LINE - 1) / LINE;

	return (lines | 1) * LINE;
}

static int say_nothing(enum libbpf_print_level level, const char *format, va_list args)
{
	(void)level;
	(void)format;
	(void)args;
	return 0;
}

static struct bpf_map *map_named(const struct live_program *program, const char *name)
{
	return bpf_object__find_map_by_name(program->object, name);
}

static int program_shape(struct live_program *program, const struct live_setup *setup)
{
	const struct live_config config = {
		.late_most_ns = setup->late_ns, .retry_ns = setup->retry_ns, .mask = program->mask, .frame_most = setup->frame_size,
		.skips = setup->late == KTX_LATE_SKIP, .shifts = setup->late == KTX_LATE_SHIFT, .times = setup->times, .traced = program->traced,
	};
	struct bpf_map *constants = map_named(program, ".rodata");
	int rc;

	/* The section's name has the object's in front of it. */
	if (!constants) {
		struct bpf_map *map;

		bpf_object__for_each_map(map, program->object)
			if (bpf_map__map_flags(map) & BPF_F_RDONLY_PROG)
				constants = map;
	}
	if (!constants)
		return -ENOENT;
	rc = bpf_map__set_initial_value(constants, &config, sizeof config);
	if (rc == 0)
		rc = bpf_map__set_max_entries(map_named(program, "slots"), setup->slots);
	if (rc == 0)
		rc = bpf_map__set_value_size(map_named(program, "slots"), program->stride);
	if (rc == 0)
		rc = bpf_map__set_max_entries(map_named(program, "ends"), setup->slots);
	return rc;
}

static int load_failed(int rc, struct ktrxer_error *err)
{
	char word[64];

	if (rc == -EPERM || rc == -EACCES)
		return ktrxer_fail(err, rc, "XDP programs need CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON: run as root, or use the packet engine");
	if (rc == -ENOMEM)
		return ktrxer_fail(err, rc, "no memory for the live engine's slots: fewer, or shorter frames (--slots)");
	if (rc == -ENOSYS)
		return ktrxer_fail(err, rc, "this kernel has no bpf() call (CONFIG_BPF_SYSCALL): use the packet engine");
	return ktrxer_fail(err, rc, "this kernel does not take the live program (%s): it needs Linux 5.18; use the packet engine",
			   ktrxer_strerror(rc, word, sizeof word));
}

static int program_load(struct live_program *program, const struct live_setup *setup, struct ktrxer_error *err)
{
	LIBBPF_OPTS(bpf_object_open_opts, options, .object_name = "ktrxer_live");
	libbpf_print_fn_t before = libbpf_set_print(say_nothing); /* a library does not print; what fails is said by its number */
	int rc;

	program->object = bpf_object__open_mem(live_object, live_object_size, &options);
	rc = program->object ? 0 : -errno;
	if (rc == 0)
		rc = program_shape(program, setup);
	if (rc == 0)
		rc = bpf_object__load(program->object);
	libbpf_set_print(before);
	return rc < 0 ? load_failed(rc, err) : 0;
}

/* Without tracepoints (CONFIG_BPF_EVENTS) frames go all the same; nobody tells whether the driver took them. */
static void program_trace(struct live_program *program)
{
	libbpf_print_fn_t before = libbpf_set_print(say_nothing);

	program->taken = bpf_program__attach(bpf_object__find_program_by_name(program->object, "live_taken"));
	program->turned_back = bpf_program__attach(bpf_object__find_program_by_name(program->object, "live_turned_back"));
	libbpf_set_print(before);
	program->traced = program->taken && program->turned_back;
}

static void *map_memory(const struct live_program *program, const char *name, size_t size)
{
	return mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map_named(program, name)), 0);
}

static size_t pages(size_t size)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (size + page - 1) / page * page;
}

static int program_map(struct live_program *program, const struct live_setup *setup, struct ktrxer_error *err)
{
	program->control_size = pages(sizeof *program->control);
	program->ends_size = pages(setup->slots * sizeof *program->ends);
	program->slots_size = pages((size_t)setup->slots * program->stride);
	program->control = map_memory(program, "control", program->control_size);
	program->ends = map_memory(program, "ends", program->ends_size);
	program->slots = map_memory(program, "slots", program->slots_size);
	if (program->control == MAP_FAILED || program->ends == MAP_FAILED || (void *)program->slots == MAP_FAILED)
		return ktrxer_fail(err, -ENOMEM, "the live engine's %zu KiB of slots cannot be mapped", program->slots_size / 1024);
	return 0;
}

static int program_aim(struct live_program *program, const struct ktrxer_device *device, struct ktrxer_error *err)
{
	const uint32_t zero = 0, index = device->index;
	char word[64];
	int rc = bpf_map_update_elem(bpf_map__fd(map_named(program, "device")), &zero, &index, 0);

	if (rc == 0)
		return 0;
	rc = -errno;
	if (rc == -ENODEV || rc == -EINVAL)
		return ktrxer_fail(err, -ENODEV, "device '%s' is gone", device->name);
	return ktrxer_fail(err, rc, "frames cannot be redirected to '%s': %s", device->name, ktrxer_strerror(rc, word, sizeof word));
}

static int program_open(struct live_program *program, const struct live_setup *setup, bool traced, struct ktrxer_error *err)
{
	int rc;

	*program = (struct live_program){
		.mask = setup->slots - 1, .stride = stride_of(setup->frame_size), .frame_size = setup->frame_size, .traced = traced,
		.control = MAP_FAILED, .ends = MAP_FAILED, .slots = MAP_FAILED,
	};
	rc = program_load(program, setup, err);
	if (rc == 0)
		rc = program_map(program, setup, err);
	if (rc == 0)
		rc = program_aim(program, setup->device, err);
	if (rc < 0)
		return rc;
	program->lanes[0] = bpf_program__fd(bpf_object__find_program_by_name(program->object, "live_lane0"));
	program->lanes[1] = bpf_program__fd(bpf_object__find_program_by_name(program->object, "live_lane1"));
	return 0;
}

int live_program_open(struct live_program *program, const struct live_setup *setup, struct ktrxer_error *err)
{
	int rc = program_open(program, setup, true, err);

	if (rc == 0) {
		program_trace(program);
		if (program->traced)
			return 0;
		/* Once more, with a program that does not wait for what nobody tells. */
		live_program_close(program);
		rc = program_open(program, setup, false, err);
	}
	if (rc < 0)
		live_program_close(program);
	return rc;
}

void live_program_close(struct live_program *program)
{
	if ((void *)program->slots != MAP_FAILED)
		munmap(program->slots, program->slots_size);
	if (program->ends != MAP_FAILED)
		munmap(program->ends, program->ends_size);
	if (program->control != MAP_FAILED)
		munmap(program->control, program->control_size);
	bpf_link__destroy(program->turned_back);
	bpf_link__destroy(program->taken);
	bpf_object__close(program->object);
}

int live_program_run(const struct live_program *program, int lane, uint32_t repeat, uint32_t batch, uint32_t frame_size)
{
	uint8_t frame[LIVE_FRAME_MAX] = { 0 };
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = frame, .data_size_in = frame_size, .repeat = (int)repeat, .batch_size = batch,
		    .flags = BPF_F_TEST_XDP_LIVE_FRAMES);

	return bpf_prog_test_run_opts(program->lanes[lane], &options) == 0 ? 0 : -errno;
}

int live_program_try(const struct live_program *program, struct ktrxer_error *err)
{
	char word[64];
	int rc;

	program->control->batch[0] = 1;
	rc = live_program_run(program, 0, 1, 1, 64);
	program->control->lanes[0].runs = program->control->lanes[0].left = 0;
	if (rc == 0)
		return 0;
	return ktrxer_fail(err, rc, "this kernel does not run XDP programs with live frames (%s): it needs Linux 5.18; use the packet engine",
			   ktrxer_strerror(rc, word, sizeof word));
}
