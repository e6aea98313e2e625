// SPDX-License-Identifier: Apache-2.0
#include "gateway/daemon/sysfs_view.h"

#include <endian.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace rocegw::daemon {
namespace {

namespace fs = std::filesystem;

// Writer of files that keeps the first error, so that callers need not check each write.
class Writer {
 public:
  explicit Writer(fs::path base) : base_(std::move(base)) {}

  void File(const fs::path& name, const std::string& content) {
    const fs::path path = base_ / name;
    // A file system may write a replaced file to its disk at once, which takes long.
    if (Holds(path, content + "\n")) return;
    std::error_code error;
    fs::create_directories(path.parent_path(), error);
    const fs::path fresh = path.string() + ".new";
    std::ofstream(fresh) << content << "\n";
    fs::rename(fresh, path, error);
    if (error && status_.ok()) {
      status_ = Status(error.value(), path.string() + ": " + error.message());
    }
  }
  void Directory(const fs::path& name) {
    std::error_code error;
    fs::create_directories(base_ / name, error);
    if (error && status_.ok()) {
      status_ = Status(error.value(), (base_ / name).string() + ": " + error.message());
    }
  }
  void RemoveFile(const fs::path& name) const {
    std::error_code ignored;
    fs::remove(base_ / name, ignored);
  }
  bool Has(const fs::path& name) const { return fs::exists(base_ / name); }
  Status status() const { return status_; }

 private:
  static bool Holds(const fs::path& path, const std::string& content) {
    std::ifstream file(path);
    return file && std::string(std::istreambuf_iterator<char>(file), {}) == content;
  }

  fs::path base_;
  Status status_;
};

std::string GuidText(uint64_t guid) {
  const uint64_t value = be64toh(guid);
  char text[24];
  std::snprintf(text, sizeof text, "%04x:%04x:%04x:%04x", static_cast<unsigned>(value >> 48),
                static_cast<unsigned>(value >> 32 & 0xFFFF),
                static_cast<unsigned>(value >> 16 & 0xFFFF), static_cast<unsigned>(value & 0xFFFF));
  return text;
}

std::string GidText(const wire::Gid& gid) {
  std::string text;
  char word[8];
  for (size_t i = 0; i < 16; i += 2) {
    std::snprintf(word, sizeof word, "%s%02x%02x", i == 0 ? "" : ":", gid.bytes[i],
                  gid.bytes[i + 1]);
    text += word;
  }
  return text;
}

// A hole in the table has a zero GID and, as in Linux, no type and no netdev.
void WriteGid(Writer& port, size_t index, const wire::Gid& gid, const session::Device& device) {
  const std::string number = std::to_string(index);
  port.File("gids/" + number, GidText(gid));
  if (gid.IsZero()) {
    port.RemoveFile("gid_attrs/types/" + number);
    port.RemoveFile("gid_attrs/ndevs/" + number);
  } else {
    port.File("gid_attrs/types/" + number, "RoCE v2");
    port.File("gid_attrs/ndevs/" + number, device.interface);
  }
}

// Formats a rate as Linux does. An interface that reports no speed gets 10 Gbit/s, as in
// ibv_query_port.
std::string RateText(uint64_t bytes_per_second) {
  const uint64_t gigabits = bytes_per_second * 8 / 1'000'000'000;
  return std::to_string(bytes_per_second == 0 ? 10 : std::max<uint64_t>(gigabits, 1)) +
         " Gb/sec (4X)";
}

}  // namespace

Status SysfsView::Create(const std::vector<session::Device>& devices, const std::string& version) {
  Remove();
  return Renew(devices, version);
}

Status SysfsView::Renew(const std::vector<session::Device>& devices, const std::string& version) {
  Writer verbs(root_ + "/class/infiniband_verbs");
  verbs.File("abi_version", "6");
  if (!verbs.status().ok()) return verbs.status();
  for (const session::Device& device : devices) {
    Writer files(root_ + "/class/infiniband/" + device.name);
    files.File("node_guid", GuidText(device.node_guid));
    files.File("sys_image_guid", GuidText(device.node_guid));
    files.File("node_type", "1: CA");
    files.File("node_desc", device.name);
    files.File("hca_type", "rocegw");
    files.File("board_id", "rocegw");
    files.File("fw_ver", version);
    files.File("hw_rev", "0");
    files.File("device/numa_node", "-1");
    if (!device.interface.empty()) files.Directory("device/net/" + device.interface);
    files.File("ports/1/link_layer", "Ethernet");
    files.File("ports/1/lid", "0x0");
    files.File("ports/1/lid_mask_count", "0");
    files.File("ports/1/sm_lid", "0x0");
    files.File("ports/1/sm_sl", "0");
    files.File("ports/1/cap_mask", "0x00010000");
    files.File("ports/1/pkeys/0", "0xffff");
    verbs.File("uverbs_" + device.name + "/ibdev", device.name);
    verbs.File("uverbs_" + device.name + "/abi_version", "1");
    if (!files.status().ok()) return files.status();
    if (!verbs.status().ok()) return verbs.status();
    if (Status status = Update(device); !status.ok()) return status;
  }
  return OkStatus();
}

Status SysfsView::Update(const session::Device& device) {
  Writer port(root_ + "/class/infiniband/" + device.name + "/ports/1");
  port.File("state", device.up ? "4: ACTIVE" : "1: DOWN");
  port.File("phys_state", device.up ? "5: LinkUp" : "3: Disabled");
  port.File("rate", RateText(device.link_bytes_per_second));
  for (const char* directory : {"gids", "gid_attrs/types", "gid_attrs/ndevs"}) {
    port.Directory(directory);
  }
  for (size_t i = 0; i < device.gids.size(); ++i) WriteGid(port, i, device.gids[i], device);
  // The table may have become shorter.
  for (size_t i = device.gids.size(); port.Has("gids/" + std::to_string(i)); ++i) {
    WriteGid(port, i, wire::Gid{}, device);
  }
  return port.status();
}

void SysfsView::Remove() {
  std::error_code ignored;
  fs::remove_all(root_, ignored);
}

}  // namespace rocegw::daemon
