// SPDX-License-Identifier: Apache-2.0

package object

import (
	"math/big"
	"strings"
)

// flavor is a Flavor (nova/objects/flavor.py).
type flavor struct {
	reader
	name       string
	extraSpecs map[string]string
	// amounts are the amounts of resource classes in its extra specs, including 0.
	amounts map[string]int64
}

// readFlavor reads the flavor of a request, with the amounts of resources in its extra specs.
func readFlavor(r reader) flavor {
	if r.null("flavor") {
		r.wrong("flavor", "is missing")
	}
	f := flavor{reader: r.object("flavor", "Flavor 1"), amounts: make(map[string]int64)}
	f.name, f.extraSpecs = f.text("name"), f.textMap("extra_specs")
	for key, value := range f.extraSpecs {
		kind, group, name := placementKey(key)
		if kind != "resources" || group != "" {
			continue
		}
		amount, ok, tooLarge := parseAmount(value)
		if tooLarge {
			f.wrong("extra_specs", "requires more of "+name+" than Placement can count")
		}
		if ok {
			f.amounts[name] = amount
		}
	}
	return f
}

// placementKey splits an extra spec for Placement (nova/scheduler/utils.py XS_KEYPAT):
// "resources1:VGPU" is resources, 1 and VGPU. For any other it returns empty strings.
func placementKey(key string) (kind, group, name string) {
	head, name, ok := strings.Cut(key, ":")
	if !ok {
		return "", "", ""
	}
	for _, kind := range []string{"resources", "trait"} {
		if group, ok := strings.CutPrefix(head, kind); ok && len(group) <= 64 && strings.Trim(group, groupLetters) == "" {
			return kind, group, name
		}
	}
	return "", "", ""
}

const groupLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"

// parseAmount parses an amount as Python's int does. Nova ignores values that are not numbers,
// or negative (nova/objects/request_spec.py add_resource).
func parseAmount(text string) (amount int64, ok, tooLarge bool) {
	text = strings.TrimPrefix(strings.TrimSpace(text), "+")
	plain := strings.ReplaceAll(text, "_", "")
	if plain == "" || strings.Trim(plain, "0123456789") != "" ||
		strings.HasPrefix(text, "_") || strings.HasSuffix(text, "_") || strings.Contains(text, "__") {
		return 0, false, false
	}
	number, ok := new(big.Int).SetString(plain, 10)
	if !ok {
		return 0, false, false
	}
	if !number.IsInt64() || number.Int64() > maxAmount {
		return 0, false, true
	}
	return number.Int64(), true, false
}

// resources returns the amounts that an instance needs, by resource class. Extra specs override
// the flavor, and 0 removes a class. bfv means that its root disk is a volume.
func (f flavor) resources(bfv bool) map[string]int64 {
	amounts := map[string]int64{
		"VCPU": f.amount("vcpus"), "MEMORY_MB": f.amount("memory_mb"),
		"DISK_GB": f.amount("ephemeral_gb") + (f.amount("swap")+1023)/1024,
	}
	if !bfv {
		amounts["DISK_GB"] += f.amount("root_gb")
	}
	if _, pinned := f.amounts["PCPU"]; pinned {
		delete(amounts, "VCPU")
	}
	for class, amount := range f.amounts {
		if judged(class) {
			amounts[class] = amount
		}
	}
	for class, amount := range amounts {
		if amount == 0 {
			delete(amounts, class)
		}
	}
	if amounts["DISK_GB"] > maxAmount {
		f.wrong("root_gb", "is more than Placement can count, with ephemeral_gb and swap")
	}
	return amounts
}

// judged reports whether the host's own inventory of a resource class decides whether there is
// enough.
func judged(class string) bool {
	return class == "VCPU" || class == "MEMORY_MB" || class == "DISK_GB" || strings.HasPrefix(class, "CUSTOM_")
}

// traits returns the traits that the flavor requires and forbids.
func (f flavor) traits() (required, forbidden []string) {
	for key, value := range f.extraSpecs {
		if kind, group, name := placementKey(key); kind == "trait" && group == "" {
			switch value {
			case "required":
				required = append(required, name)
			case "forbidden":
				forbidden = append(forbidden, name)
			}
		}
	}
	return required, forbidden
}
