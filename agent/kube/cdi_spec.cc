// SPDX-License-Identifier: Apache-2.0
#include "agent/kube/cdi_spec.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>

namespace rocegw::agent {
namespace {

namespace fs = std::filesystem;

// The oldest version with all features used here: runtimes refuse versions newer than their own.
constexpr char kCdiVersion[] = "0.5.0";
constexpr char kSuffix[] = ".json";

std::string KindName(CdiKind kind) {
  return kind == CdiKind::kSlot ? "rocegw.io/slot" : "rocegw.io/claim";
}

std::string PrefixOf(CdiKind kind) {
  return kind == CdiKind::kSlot ? "rocegw-slot-" : "rocegw-claim-";
}

fs::path FileOf(const std::string& dir, CdiKind kind, const std::string& slot_id) {
  return fs::path(dir) / (PrefixOf(kind) + slot_id + kSuffix);
}

}  // namespace

std::string CdiDeviceName(CdiKind kind, const std::string& slot_id) {
  return KindName(kind) + "=" + slot_id;
}

std::string CdiSpecOf(CdiKind kind, const std::string& slot_id, const ContainerEdits& edits) {
  nlohmann::ordered_json device = {{"name", slot_id}};
  auto& to = device["containerEdits"];
  for (const auto& [name, value] : edits.variables) to["env"].push_back(name + "=" + value);
  for (const ContainerMount& mount : edits.mounts) {
    to["mounts"].push_back({{"hostPath", mount.host_path},
                            {"containerPath", mount.container_path},
                            {"options", {"ro", "nosuid", "nodev", "bind"}}});
  }
  const nlohmann::ordered_json spec = {{"cdiVersion", kCdiVersion},
                                       {"kind", KindName(kind)},
                                       {"devices", nlohmann::ordered_json::array({device})}};
  return spec.dump(2) + "\n";
}

Status WriteCdiSpec(const std::string& dir, CdiKind kind, const std::string& slot_id,
                    const ContainerEdits& edits) {
  const fs::path file = FileOf(dir, kind, slot_id);
  // Runtimes read files that end with .json or .yaml, so this name is ignored.
  const fs::path fresh = file.string() + ".new";
  errno = 0;
  std::ofstream out(fresh);
  out << CdiSpecOf(kind, slot_id, edits);
  out.close();
  std::error_code error;
  if (out) {
    fs::rename(fresh, file, error);
  } else {
    error.assign(errno != 0 ? errno : EIO, std::generic_category());
  }
  if (!error) return OkStatus();
  return {error.value(), file.string() + ": " + error.message() +
                             "; kubernetes.cdi_dir must be a folder that the agent may write to"};
}

void KeepCdiSpecs(const std::string& dir, CdiKind kind, const std::set<std::string>& slot_ids) {
  const std::string prefix = PrefixOf(kind);
  std::error_code error;
  for (fs::directory_iterator at(dir, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (!name.starts_with(prefix) || !name.ends_with(kSuffix)) continue;
    const size_t begin = prefix.size();
    const std::string id = name.substr(begin, name.size() - begin - std::strlen(kSuffix));
    std::error_code ignored;
    if (!slot_ids.contains(id)) fs::remove(at->path(), ignored);
  }
}

}  // namespace rocegw::agent
