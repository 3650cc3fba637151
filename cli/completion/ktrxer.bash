# SPDX-License-Identifier: MIT OR Apache-2.0
# bash completion for ktrxer: the command lists the words that may stand at the cursor.
_ktrxer() {
	local word line words=() cur=${COMP_WORDS[COMP_CWORD]}
	COMPREPLY=()
	# Bash splits --name=value into three words.
	for word in "${COMP_WORDS[@]:1:COMP_CWORD}"; do
		[[ $word == '=' ]] || words+=("$word")
	done
	if [[ $cur == '=' ]]; then
		cur=''
		words+=('')
	fi
	while IFS= read -r line; do
		case $line in
		:files) compopt -o filenames 2>/dev/null; mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "$cur") ;;
		:directories) compopt -o filenames 2>/dev/null; mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -d -- "$cur") ;;
		:hosts) mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -A hostname -- "$cur") ;;
		*) COMPREPLY+=("${line%%$'\t'*}") ;;
		esac
	done < <("${COMP_WORDS[0]}" --complete "${words[@]}" 2>/dev/null)
}
complete -F _ktrxer ktrxer
