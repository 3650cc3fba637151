/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Another XDP program on a device: xdp_neighbour DEV. It prints "ready"; for each line that it reads, the number of
 * packets that the program has seen. At the end of its input it removes the program.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <net/if.h>
#include <stdio.h>

extern const unsigned char ktrxer_neighbour_object[];
extern const size_t ktrxer_neighbour_object_size;

int main(int argc, char **argv)
{
	const int device = argc > 1 ? (int)if_nametoindex(argv[1]) : 0;
	struct bpf_object *object = bpf_object__open_mem(ktrxer_neighbour_object, ktrxer_neighbour_object_size, NULL);
	struct bpf_link *link = NULL;
	char line[16];

	if (device && object && !bpf_object__load(object))
		link = bpf_program__attach_xdp(bpf_object__find_program_by_name(object, "neighbour"), device);
	if (!link) {
		perror("xdp_neighbour: device, program or link");
		return 1;
	}
	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof line, stdin)) {
		unsigned int zero = 0;
		unsigned long long seen = 0;

		bpf_map_lookup_elem(bpf_object__find_map_fd_by_name(object, "seen"), &zero, &seen);
		printf("%llu\n", seen);
		fflush(stdout);
	}
	bpf_link__destroy(link);
	bpf_object__close(object);
	return 0;
}
