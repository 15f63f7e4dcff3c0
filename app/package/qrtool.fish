# SPDX-License-Identifier: Apache-2.0
# qrtool.fish: completion for fish, which loads a file by the name of the command. The program itself knows
# what may come next.

function __qrtool_candidates
    set -l words (commandline -opc) (commandline -ct)
    $words[1] complete $words[2..-1] 2>/dev/null
end

# Where nothing is known, fish offers the names of files.
complete -c (string replace -r '.*/(.*)\.fish$' '$1' (status filename)) \
    -n 'test -n "$(__qrtool_candidates)"' -f -a '(__qrtool_candidates)'
