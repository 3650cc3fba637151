# SPDX-License-Identifier: MIT OR Apache-2.0
# fish completion for ktrxer: the command lists the words that may stand at the cursor.
function __ktrxer_complete
	set -l words (commandline -opc)
	set -l current (commandline -ct)
	test (count $current) -gt 0; or set current ''
	$words[1] --complete $words[2..-1] $current 2>/dev/null | while read -l line
		switch $line
			case :files
				__fish_complete_path (string replace -r -- '^--[^=]*=' '' $current)
			case :directories
				__fish_complete_directories (string replace -r -- '^--[^=]*=' '' $current)
			case :hosts
				__fish_print_hostnames
			case '*'
				echo $line
		end
	end
end
complete -c ktrxer -f -a '(__ktrxer_complete)'
