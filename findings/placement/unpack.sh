#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# unpack.sh VERSION SUITE FOLDER unpacks Placement of a suite of Debian, with the libraries of this Debian 12,
# in FOLDER/root.
set -euo pipefail

version=$1 suite=$2 folder=$3
options=(-qq -o APT::Sandbox::User=root)
mkdir -p "$folder/packages" "$folder/apt/lists/partial" "$folder/apt/archives/partial"
cd "$folder/packages"
# all that it needs, whatever this machine has installed
mapfile -t libraries < <(apt-get -s -o Dir::State::status=/dev/null --no-install-recommends install python3-placement |
  awk '/^Inst python3-/ && $2 != "python3-placement" && $2 != "python3-minimal" {print $2}')
apt-get "${options[@]}" download "${libraries[@]}"
if [ "$suite" != bookworm ]; then
  # shellcheck disable=SC2016
  archive=$(apt-get indextargets --format '$(REPO_URI)' | grep -v security | sort | uniq -c | sort -rn | awk '{print $2; exit}')
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $archive $suite main" > "$folder/apt/sources.list"
  options+=(-o "Dir::Etc::sourcelist=$folder/apt/sources.list" -o Dir::Etc::sourceparts=- -o "Dir::State=$folder/apt"
    -o Dir::State::status=/dev/null -o "Dir::Cache=$folder/apt")
  apt-get "${options[@]}" update
fi
apt-get "${options[@]}" download "python3-placement=$version"
for package in *.deb; do dpkg -x "$package" "$folder/root"; done
