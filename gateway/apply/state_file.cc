// SPDX-License-Identifier: Apache-2.0
#include "gateway/apply/state_file.h"

#include <cerrno>
#include <string_view>

#include "gateway/disk/durable_file.h"

namespace rocegw::apply {
namespace {

// First line of the file; the message follows. The number counts incompatible changes of the
// format.
constexpr std::string_view kHeader = "rocegw configuration 1\n";
// Largest message of gRPC by which a configuration comes (controller and agent bound it lower).
constexpr size_t kMost = size_t{1} << 30;

}  // namespace

Status WriteStateFile(const std::string& path, const gateway::v1::GetConfigResponse& state) {
  const Status status = WriteDurably(path, std::string(kHeader) + state.SerializeAsString(), 0600);
  return status.ok() ? status : Status(status.error(), "state file " + status.text());
}

StatusOr<bool> ReadStateFile(const std::string& path, gateway::v1::GetConfigResponse& state) {
  if (path.empty()) return false;
  auto bytes = ReadSmallFile(path, kMost);
  if (!bytes.ok()) {
    if (bytes.status().error() == ENOENT) return false;
    return Status(bytes.status().error(), "state file " + bytes.status().text());
  }
  if (!bytes->starts_with(kHeader) || !state.ParseFromString(bytes->substr(kHeader.size())) ||
      state.source().empty()) {
    state.Clear();
    return Status(EBADMSG, "state file " + path +
                               ": not one of this version, or damaged; remove it, the agent will "
                               "bring the configuration again");
  }
  return true;
}

}  // namespace rocegw::apply
