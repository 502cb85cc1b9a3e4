#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Placement 8.0.0: if the group without a suffix and one with a suffix ask for the same class, candidates of two
# providers claim more than was asked for, unless group_policy is none; a candidate with room for both groups
# on one provider adds its amount to theirs. 13.0.0 and 16.0.0 do the same.
# Seen: with eight VCPU on each of two providers, resources=VCPU:1&resources_A=VCPU:1 has candidates of three
# VCPU. With one VCPU on each, which is enough, its only candidate has two of one, and its claim is refused.
set -euo pipefail

here=$(cd "$(dirname "$0")/placement" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
bash "$here/unpack.sh" 8.0.0-2 bookworm "$folder"
export PYTHONPATH=$folder/root/usr/lib/python3/dist-packages:$here PYTHONDONTWRITEBYTECODE=1 PYTHONWARNINGS=ignore

# ask VCPUS asks for candidates of two providers with so many VCPU each
ask() {
  mkdir "$folder/$1"
  /usr/bin/python3 - "$folder/$1" "$1" <<'PYTHON'
import sys
from service import Placement

folder, vcpus = sys.argv[1], int(sys.argv[2])
p = Placement(folder)
p.provider("left", vcpus=vcpus)
p.provider("right", parent="left", vcpus=vcpus)
more = {}
for policy in "", "&group_policy=none", "&group_policy=isolate":
    query = "resources=VCPU:1&resources_A=VCPU:1" + policy
    found = p.candidates(query)
    print(vcpus, query, found)
    more[policy] = [one for one in found if sum(one.values()) != 2]
    if vcpus == 1 and policy != "&group_policy=none":
        assert len(found) == 1 and sorted(found[0].values()) == [1, 2], "a candidate has room"
        assert p.claim(found[0]) == 409, "the claim is accepted"
assert more["&group_policy=none"] == [], "group_policy=none claims more"
for policy in "", "&group_policy=isolate":
    assert more[policy] and all(sum(one.values()) == 3 for one in more[policy]), "no candidate claims more"
PYTHON
}
ask 8
ask 1
