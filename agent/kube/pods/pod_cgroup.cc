// SPDX-License-Identifier: Apache-2.0
#include "agent/kube/pods/pod_cgroup.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace rocegw::agent {
namespace {

using Names = std::span<const std::string>;

constexpr std::string_view kSlice = ".slice";
constexpr std::string_view kKubepods = "kubepods";
constexpr size_t kContainerIdDigits = 64;

bool IsHex(std::string_view text) {
  return std::ranges::all_of(text, [](unsigned char c) { return std::isxdigit(c) != 0; });
}

bool IsContainerId(std::string_view text) {
  return text.size() == kContainerIdDigits && IsHex(text);
}

// Accepts a UUID, or the 32 digits of a hash for a pod that kubelet read from a file.
bool IsUid(std::string_view text) {
  constexpr size_t kHashDigits = 32;
  constexpr std::string_view kForm = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
  if (text.size() == kHashDigits) return IsHex(text);
  if (text.size() != kForm.size()) return false;
  for (size_t i = 0; i < kForm.size(); ++i) {
    if (kForm[i] == '-' ? text[i] != '-' : !IsHex(text.substr(i, 1))) return false;
  }
  return true;
}

bool IsQos(std::string_view name) { return name == "burstable" || name == "besteffort"; }

std::string UidIn(std::string_view pod_name) {
  constexpr std::string_view kPod = "pod";
  if (!pod_name.starts_with(kPod) || !IsUid(pod_name.substr(kPod.size()))) return {};
  return std::string(pod_name.substr(kPod.size()));
}

std::vector<std::string> NamesOf(const std::string& path) {
  std::vector<std::string> names;
  for (size_t begin = 0; begin < path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    if (end > begin) names.push_back(path.substr(begin, end - begin));
    begin = end + 1;
  }
  return names;
}

bool IsUnit(std::string_view name) {
  return std::ranges::any_of(std::array<std::string_view, 3>{".slice", ".scope", ".service"},
                             [&](std::string_view ending) { return name.ends_with(ending); });
}

// Returns the number of names that lead to a node that is itself a container (kind), as container
// engines name it: only root creates cgroups there.
size_t NodeContainerDepth(Names names) {
  if (names.size() < 2) return 0;
  const std::string_view id = names[1];
  const auto scope_of = [&](std::string_view engine) {
    constexpr std::string_view kScope = ".scope";
    return id.starts_with(engine) && id.ends_with(kScope) &&
           IsContainerId(
               id.substr(engine.size(), id.size() - std::min(id.size(), engine.size() + 6)));
  };
  if (names[0] == "docker" && IsContainerId(id)) return 2;
  if (names[0] == "system.slice" && scope_of("docker-")) return 2;
  if (names[0] == "machine.slice" && scope_of("libpod-"))
    return names.size() > 2 && names[2] == "container" ? 3 : 2;
  return 0;
}

// Returns the uid if the names are slices of the systemd driver. `relative`: names after "/..", of
// which the first may be any slice of the chain.
std::string UidBySlices(Names names, bool relative) {
  std::string above;
  for (const std::string& name : names) {
    if (!name.ends_with(kSlice)) return {};
    const std::string stem = name.substr(0, name.size() - kSlice.size());
    // systemd places a-b.slice below a.slice, and no other unit has such a name.
    const bool first = above.empty();
    const size_t dash = stem.rfind('-');
    if (first && !relative && dash != std::string::npos) return {};
    if (!first && (dash == std::string::npos || stem.substr(0, dash) != above)) return {};
    above = stem;
    if (dash == std::string::npos) continue;
    std::string last = stem.substr(dash + 1);
    std::ranges::replace(last, '_', '-');
    const std::string uid = UidIn(last);
    if (uid.empty()) continue;
    std::string_view parent = std::string_view(stem).substr(0, dash);
    const size_t qos = parent.rfind('-');
    if (qos != std::string_view::npos && IsQos(parent.substr(qos + 1)))
      parent = parent.substr(0, qos);
    const size_t root = parent.rfind('-');
    const std::string_view kubepods =
        root == std::string_view::npos ? parent : parent.substr(root + 1);
    return kubepods == kKubepods ? uid : std::string();
  }
  return {};
}

// Returns the uid if the names are directories of the cgroupfs driver.
std::string UidByFolders(Names names, bool relative) {
  size_t at = 0;
  const auto kubepods = std::ranges::find(names, kKubepods);
  if (kubepods != names.end()) {
    at = static_cast<size_t>(kubepods - names.begin()) + 1;
    // kubelet's cgroup root is not below a unit: users have their own cgroups below units.
    if (std::ranges::any_of(names.first(at), IsUnit)) return {};
  } else if (!relative) {
    return {};
  }
  if (at < names.size() && IsQos(names[at])) ++at;
  return at < names.size() ? UidIn(names[at]) : std::string();
}

bool IsContainersName(std::string_view name) {
  constexpr std::array<std::string_view, 12> kBeginnings{
      "cri-", "crio-",        "docker-", "libpod-",  "nerdctl-", "lxc.",
      "lxc-", "libcontainer", "runc-",   "buildkit", "conmon",   "machine-"};
  constexpr std::array<std::string_view, 4> kWhole{"docker", "lxc", "machine.slice",
                                                   "libpod_parent"};
  if (name.find(kKubepods) != std::string_view::npos) return true;
  if (std::ranges::any_of(kBeginnings, [&](auto begin) { return name.starts_with(begin); }))
    return true;
  if (std::ranges::find(kWhole, name) != kWhole.end()) return true;
  const std::string_view stem = name.substr(0, name.rfind('.'));
  return IsContainerId(stem) || !UidIn(stem).empty();
}

}  // namespace

CgroupPlace PlaceOf(const std::string& cgroup) {
  const std::vector<std::string> all = NamesOf(cgroup);
  size_t up = 0;
  while (up < all.size() && all[up] == "..") ++up;
  const Names names = Names(all).subspan(up);
  const CgroupPlace unknown{ProcessPlace::kUnknownContainer, {}};
  // The kernel writes ".." only at the beginning.
  if (std::ranges::find(names, "..") != names.end()) return unknown;
  const bool relative = up > 0;
  for (const size_t skipped : {size_t{0}, NodeContainerDepth(names)}) {
    std::string uid = UidBySlices(names.subspan(skipped), relative);
    if (uid.empty()) uid = UidByFolders(names.subspan(skipped), relative);
    if (!uid.empty()) return {ProcessPlace::kPod, uid};
  }
  return std::ranges::any_of(names, IsContainersName) ? unknown : CgroupPlace{};
}

std::string PodUidOf(const std::string& cgroup) { return PlaceOf(cgroup).pod_uid; }

}  // namespace rocegw::agent
