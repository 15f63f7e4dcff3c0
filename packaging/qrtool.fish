# SPDX-License-Identifier: Apache-2.0
# qrtool.fish: completion for fish. The program itself knows what may come next.

function __qrtool_candidates
    set -l words (commandline -opc) (commandline -ct)
    $words[1] complete $words[2..-1] 2>/dev/null
end

for name in qrtool qrtool-mpi
    # Where nothing is known, fish offers the names of files.
    complete -c $name -n 'test -n "$(__qrtool_candidates)"' -f -a '(__qrtool_candidates)'
end
