/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cli.h"
#include "commands.h"

int main(int argc, char *argv[])
{
	return cli_main(argc, argv, command_table);
}
