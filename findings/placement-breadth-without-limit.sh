#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Placement 13.0.0: allocation_candidates_generation_strategy = breadth-first, which returns candidates "from all
# viable roots in a balanced way", has no effect on the limit of a request: that takes any. Only with
# max_allocation_candidates the strategy has one.
# Seen: of three trees of three providers, max_allocation_candidates = 3 returns one of each tree in every process;
# limit=3 returns two or three of one tree in most of twelve processes. 16.0.0 does the same.
set -euo pipefail

here=$(cd "$(dirname "$0")/placement" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
bash "$here/unpack.sh" 13.0.0-1 trixie "$folder"
export PYTHONPATH=$folder/root/usr/lib/python3/dist-packages:$here PYTHONDONTWRITEBYTECODE=1 PYTHONWARNINGS=ignore

# trees OPTION QUERY prints from how many trees three candidates come, in a process of its own
trees() {
  rm -f "$folder/placement.db"
  /usr/bin/python3 - "$folder" "$@" <<'PYTHON'
import sys
from service import Placement

folder, option, query = sys.argv[1:]
p = Placement(folder, "[placement]\nallocation_candidates_generation_strategy = breadth-first\n" + option)
for tree in "abc":
    p.provider(tree)
    for n in "123":
        p.provider(tree + n, parent=tree, vcpus=8)
found = [name for candidate in p.candidates("resources=VCPU:1" + query) for name in candidate]
assert len(found) == 3, found
print(len({name[0] for name in found}), *found)
PYTHON
}
fewer=0
for seed in $(seq 12); do
  export PYTHONHASHSEED=$seed
  balanced=$(trees 'max_allocation_candidates = 3' '')
  limited=$(trees '' '&limit=3')
  echo "max_allocation_candidates = 3: trees and providers: $balanced; limit=3: $limited"
  [[ $balanced == 3* ]]
  if [[ $limited != 3* ]]; then fewer=$((fewer + 1)); fi
done
[ $fewer -gt 0 ]
