// SPDX-License-Identifier: Apache-2.0

package filters

import (
	"fmt"
	"slices"
	"strings"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/hostset"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// ImageProperties refuses hosts that do not support the architecture, hypervisor type, VM mode and
// hypervisor version that the image requires (nova/scheduler/filters/image_props_filter.py).
//
// Nova compares with the list of supported instances of each driver, which its API does not
// return. The hypervisor type determines most of that list; for libvirt the architecture comes from
// the host's traits, and whether KVM is available is unknown. It refuses a host if the answer is
// unknown.
type ImageProperties struct {
	oncePerRequest
	// DefaultArchitecture applies to images without one (image_properties_default_architecture);
	// empty means any.
	DefaultArchitecture string

	kinds cached[[]kindOfHost]
}

// kindOfHost is a set of hosts with the same hypervisor.
type kindOfHost struct {
	hypervisor string
	version    int64
	hosts      hostset.Set
}

func kinds(s *inventory.States) (list []kindOfHost) {
	for i := range s.Len() {
		h := s.Host(i)
		n := slices.IndexFunc(list, func(k kindOfHost) bool { return k.hypervisor == h.HypervisorType && k.version == h.HypervisorVersion })
		if n < 0 {
			n = len(list)
			list = append(list, kindOfHost{h.HypervisorType, h.HypervisorVersion, hostset.New(s.Len())})
		}
		list[n].hosts.Add(i)
	}
	return list
}

func (*ImageProperties) Name() string { return "ImagePropertiesFilter" }

// For implements Filter. A host whose support for the image is unknown is left out, with this reason.
func (f *ImageProperties) For(s *inventory.States, r *placing.Request, _ span.Instant) Test {
	if forced(r) {
		return nil
	}
	switch i, err := f.read(r); {
	case err != nil:
		return refuseAll(err.Error())
	case i == nil:
		return nil
	default:
		hosts := i.judge(s, f.kinds.get(s, kinds))
		return subset{hosts[yes], func(n int) string {
			if hosts[unsure].Has(n) {
				return fmt.Sprintf("the image requires %s, and Nova's API does not tell whether the host supports that", i)
			}
			return fmt.Sprintf("the image requires %s, which the host does not support", i)
		}}
	}
}

// Unsupported names what the image requires and some host may or may not support.
func (f *ImageProperties) Unsupported(s *inventory.States, r *placing.Request) string {
	if forced(r) {
		return ""
	}
	i, err := f.read(r)
	if i == nil || err != nil {
		return ""
	}
	for n := range i.judge(s, f.kinds.get(s, kinds))[unsure].All() {
		return fmt.Sprintf("Nova's API does not tell whether %s supports %s", s.Host(n).Name, i)
	}
	return ""
}

// image is what an image requires; empty fields require nothing.
type image struct {
	arch, hypervisor, mode string
	versions               versions
}

// read returns what the image of the request requires; nil if it requires nothing.
func (f *ImageProperties) read(r *placing.Request) (*image, error) {
	i := image{arch: f.DefaultArchitecture}
	if arch, named := r.ImageProperties["hw_architecture"]; named {
		i.arch = arch
	}
	for _, p := range []struct {
		value   *string
		given   string
		aliases map[string]string
		names   []string
		what    string
	}{
		{&i.arch, i.arch, architectureAliases, architectures, "architecture"},
		{&i.hypervisor, r.ImageProperties["img_hv_type"], map[string]string{"xapi": "xen"}, hypervisors, "hypervisor type"},
		{&i.mode, r.ImageProperties["hw_vm_mode"], map[string]string{"pv": "xen", "hv": "hvm", "baremetal": "hvm"}, modes, "VM mode"},
	} {
		*p.value = strings.ToLower(p.given)
		if name, is := p.aliases[*p.value]; is {
			*p.value = name
		}
		if *p.value != "" && !slices.Contains(p.names, *p.value) {
			return nil, fmt.Errorf("the image requires %q, which is not a known %s", p.given, p.what)
		}
	}
	if i.arch == "" && i.hypervisor == "" && i.mode == "" {
		return nil, nil
	}
	var err error
	i.versions, err = readVersions(r.ImageProperties["img_hv_requested_version"])
	return &i, err
}

// String returns the requirements of the image.
func (i *image) String() string {
	words := slices.DeleteFunc([]string{i.arch, i.hypervisor, i.mode, i.versions.text}, func(word string) bool { return word == "" })
	return strings.Join(words, " ")
}

// answer states whether a host supports something: yes, no, or unknown.
type answer int

const (
	yes answer = iota
	unsure
	no
)

// judge divides the hosts into three sets by whether they support the image: yes, no, or unknown.
func (i *image) judge(s *inventory.States, all []kindOfHost) (hosts [3]hostset.Set) {
	for a := range hosts {
		hosts[a] = hostset.New(s.Len())
	}
	native := architectureKnown(s, i.arch)
	for _, k := range all {
		d := drivers[k.hypervisor]
		rest := max(i.versions.on(k.version), d.among(d.hypervisors, i.hypervisor, d.perhaps), d.among(d.modes, i.mode, nil))
		if i.arch == "" || d.architectures != nil || !d.known || rest == no {
			if i.arch != "" {
				rest = max(rest, d.among(d.architectures, i.arch, nil))
			}
			hosts[rest].Unite(k.hosts)
			continue
		}
		runs, may := k.hosts.Clone(), k.hosts.Clone()
		runs.Keep(native)
		may.Subtract(native)
		hosts[rest].Unite(runs)
		hosts[max(rest, unsure)].Unite(may)
	}
	return hosts
}

// driver is what the hosts of one hypervisor type support.
type driver struct {
	known bool
	// architectures are nil if they are the host's own.
	architectures, hypervisors, modes []string
	// perhaps are further hypervisors that some of these hosts support.
	perhaps []string
}

// drivers contains, by hypervisor_type, what Nova's driver returns as supported_instances: for
// libvirt each domain type that the host can emulate (nova/virt/libvirt/driver.py
// _get_instance_capabilities), for the others fixed lists (nova/virt/vmwareapi/host.py,
// zvm/driver.py, hyperv/hostops.py, fake.py).
var drivers = map[string]driver{
	"QEMU":   {known: true, hypervisors: []string{"qemu"}, perhaps: []string{"kvm", "kqemu", "xen"}, modes: []string{"hvm"}},
	"LXC":    {known: true, hypervisors: []string{"lxc"}, modes: []string{"exe"}},
	"ironic": {known: true, hypervisors: []string{"baremetal"}, modes: []string{"hvm"}},
	"fake":   {known: true, architectures: []string{"x86_64"}, hypervisors: []string{"fake"}, modes: []string{"hvm"}},
	"hyperv": {known: true, architectures: []string{"i686", "x86_64"}, hypervisors: []string{"hyperv"}, modes: []string{"hvm"}},
	"zvm":    {known: true, architectures: []string{"s390x"}, hypervisors: []string{"zvm"}, modes: []string{"hvm"}},
	"VMware vCenter Server": {known: true, architectures: []string{"i686", "x86_64"},
		hypervisors: []string{"vmware"}, modes: []string{"hvm"}},
}

// among states whether name is one of names; "" is always.
func (d driver) among(names []string, name string, perhaps []string) answer {
	switch {
	case name == "" || slices.Contains(names, name):
		return yes
	case !d.known || slices.Contains(perhaps, name):
		return unsure
	default:
		return no
	}
}

// architectureKnown returns the hosts whose traits prove that an architecture is their own:
// HW_ARCH_X, or a feature that only its processors have. Other hosts may emulate it.
func architectureKnown(s *inventory.States, arch string) hostset.Set {
	known := s.Trait("HW_ARCH_" + strings.ToUpper(arch)).Clone()
	if arch == "x86_64" {
		for _, feature := range strings.Fields("SSE2 SSE SSE41 SSE42 SSSE3 MMX AVX AVX2 AESNI") {
			known.Unite(s.Trait("HW_CPU_X86_" + feature))
		}
	}
	return known
}

// The names that Nova accepts, and the names they stand for (nova/objects/fields.py
// Architecture, HVType, VMMode).
var (
	architectures = strings.Fields("alpha armv6 armv7l armv7b aarch64 cris i686 ia64 lm32 m68k microblaze microblazeel mips mipsel mips64 " +
		"mips64el openrisc parisc parisc64 ppc ppcle ppc64 ppc64le ppcemb s390 s390x sh4 sh4eb sparc sparc64 unicore32 x86_64 xtensa xtensaeb")
	architectureAliases = map[string]string{
		"i386": "i686", "i486": "i686", "i586": "i686", "x86_32": "i686", "x86_32p": "i686", "amd64": "x86_64",
	}
	hypervisors = strings.Fields("baremetal bhyve docker fake hyperv ironic kqemu kvm lxc lxd openvz parallels phyp prsm qemu test uml vbox vmware vz xen zvm")
	modes       = strings.Fields("hvm xen uml exe")
)
