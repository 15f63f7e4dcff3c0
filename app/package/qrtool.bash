# SPDX-License-Identifier: Apache-2.0
# qrtool.bash: completion for bash. The program itself knows what may come next.

_qrtool() {
  mapfile -t COMPREPLY < <("${COMP_WORDS[0]}" complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | cut -f1)
  # Where nothing is known, the names of files.
  if [[ ${#COMPREPLY[@]} -eq 0 ]]; then compopt -o default; fi
}
complete -F _qrtool qrtool qrtool-mpi
