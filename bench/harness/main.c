/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "bench_command_table.h"
#include "cli.h"

int main(int argc, char *argv[])
{
	return cli_main(argc, argv, bench_command_table);
}
