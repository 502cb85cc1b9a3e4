#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Placement 16.0.0: with [workarounds] optimize_for_wide_provider_trees, a provider counts as empty where several
# groups come from it: what others use of it is forgotten, and a candidate can have no room. Each group alone has.
# Seen: of eight VCPU four are used; the groups A=2 and B=4 get the provider with the option, and no candidate
# without it. Placement refuses the claim of its own candidate with 409.
set -euo pipefail

here=$(cd "$(dirname "$0")/placement" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
bash "$here/unpack.sh" 16.0.0-4 sid "$folder"
export PYTHONPATH=$folder/root/usr/lib/python3/dist-packages:$here PYTHONDONTWRITEBYTECODE=1 PYTHONWARNINGS=ignore

# ask BOOLEAN asks with or without the option
ask() {
  mkdir "$folder/$1"
  /usr/bin/python3 - "$folder/$1" "$1" <<'PYTHON'
import sys
from service import Placement

folder, option = sys.argv[1:]
p = Placement(folder, f"[workarounds]\noptimize_for_wide_provider_trees = {option}")
p.provider("host", vcpus=8)
assert p.claim({"host": 4}) == 204
found = p.candidates("resources_A=VCPU:2&resources_B=VCPU:4&group_policy=none")
claims = [p.claim(one) for one in found]
print(f"optimize_for_wide_provider_trees = {option}: candidates {found}, their claims {claims}")
assert (found, claims) == (([{"host": 6}], [409]) if option == "true" else ([], [])), "not as seen"
PYTHON
}
ask false
ask true
