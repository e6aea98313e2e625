// SPDX-License-Identifier: Apache-2.0
#include "gateway/session/attach/slot_sockets.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <set>

namespace rocegw::session {
namespace {

constexpr size_t kFolderDigits = 8;
// Mode of the directory above the pools' directories: programs must be able to pass it, but not
// list it.
constexpr mode_t kTopMode = 0711;

// Returns the mode of a slot's directory: passable for users who may connect to its socket. The
// socket's name is known, so other users need not read the directory.
mode_t DirectoryMode(uint32_t socket_mode) {
  constexpr mode_t kOwner = 0700;
  constexpr mode_t kGroupWrites = 0020;
  constexpr mode_t kOthersWrite = 0002;
  return kOwner | ((socket_mode & kGroupWrites) != 0 ? 0050 : 0) |
         ((socket_mode & kOthersWrite) != 0 ? 0001 : 0);
}

// FNV-1a hash.
uint32_t Hash(const std::string& text) {
  uint32_t hash = 2166136261u;
  for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 16777619u;
  return hash;
}

Status Failed(const std::string& path) {
  const int error = errno;
  return {error, path + ": " + std::strerror(error)};
}

}  // namespace

std::string SlotFolder(const tenant::PoolSettings& pool) {
  std::string digits = pool.uid.substr(0, kFolderDigits);
  const bool good = digits.size() == kFolderDigits &&
                    std::ranges::all_of(digits, [](unsigned char c) { return std::isxdigit(c); });
  if (good) {
    std::ranges::transform(digits, digits.begin(), [](unsigned char c) { return std::tolower(c); });
    return digits;
  }
  char text[kFolderDigits + 1];
  std::snprintf(text, sizeof text, "%08x", Hash(pool.uid.empty() ? pool.name : pool.uid));
  return text;
}

std::string SlotSockets::Clash(const tenant::PoolSettings& pool) const {
  const std::string folder = SlotFolder(pool);
  for (const auto& [name, entry] : pools_) {
    if (name != pool.name && entry.folder == folder) return name;
  }
  return "";
}

void SlotSockets::Set(const tenant::PoolSettings& pool, const SlotRights& rights) {
  if (directory_.empty()) return;
  const std::string folder = SlotFolder(pool);
  const auto known = pools_.find(pool.name);
  if (known != pools_.end() && (known->second.folder != folder || known->second.rights != rights)) {
    // The rights changed: directories get them, sockets are created again.
    Remove(pool.name);
  }
  Entry& entry = pools_[pool.name];
  entry.folder = folder;
  entry.rights = rights;
  while (!entry.sockets.empty() && entry.sockets.rbegin()->first >= pool.slots)
    Close(entry, entry.sockets.rbegin()->first);
  for (uint32_t slot = 0; slot < pool.slots; ++slot) {
    if (entry.sockets.contains(slot)) continue;
    if (Status opened = Open(pool.name, entry, slot); !opened.ok()) {
      services_.reports.Tell("SOCKET_FAILED", pool.name, "socket",
                             pool.name + ": slot " + std::to_string(slot) + ": " + opened.text());
    }
  }
}

Status SlotSockets::Make(const tenant::PoolSettings& pool, const SlotRights& rights) {
  if (directory_.empty()) return OkStatus();
  const std::string folder = SlotFolder(pool);
  std::optional<Entry> old;
  const auto known = pools_.find(pool.name);
  const bool is_new = known == pools_.end();
  if (!is_new && (known->second.folder != folder || known->second.rights != rights)) {
    if (known->second.folder == folder) {
      if (Status may = MayHave(known->second, rights); !may.ok()) return may;
    }
    old = known->second;
    Remove(pool.name);
  }
  Entry& entry = pools_[pool.name];
  entry.folder = folder;
  entry.rights = rights;
  std::vector<uint32_t> made;
  Status opened = OpenMissing(pool, entry, made);
  if (opened.ok()) return opened;
  for (const uint32_t slot : made) Close(entry, slot);
  if (is_new || old) Remove(pool.name);
  if (old) {
    Entry& again = pools_[pool.name];
    again.folder = old->folder;
    again.rights = old->rights;
    for (const auto& [slot, path] : old->sockets) {
      if (Status status = Open(pool.name, again, slot); !status.ok())
        services_.reports.Tell("SOCKET_FAILED", pool.name, "socket",
                               pool.name + ": " + status.text());
    }
  }
  return opened;
}

Status SlotSockets::OpenMissing(const tenant::PoolSettings& pool, Entry& entry,
                                std::vector<uint32_t>& made) {
  for (uint32_t slot = 0; slot < pool.slots; ++slot) {
    if (entry.sockets.contains(slot)) continue;
    if (Status opened = Open(pool.name, entry, slot); !opened.ok())
      return {opened.error(), "slot " + std::to_string(slot) + ": " + opened.text()};
    made.push_back(slot);
  }
  return OkStatus();
}

Status SlotSockets::MayHave(const Entry& entry, const SlotRights& rights) const {
  const std::string path = directory_ + "/" + entry.folder;
  Status may = MakeDirectory(path, rights);
  (void)MakeDirectory(path, entry.rights);
  return may;
}

Status SlotSockets::MakeDirectory(const std::string& path, const SlotRights& rights) const {
  const mode_t mode = DirectoryMode(rights.mode);
  if (::mkdir(path.c_str(), mode) != 0 && errno != EEXIST) return Failed(path);
  if (::chmod(path.c_str(), mode) != 0 || ::lchown(path.c_str(), rights.uid, rights.gid) != 0)
    return Failed(path);
  return OkStatus();
}

Status SlotSockets::MayOpen(const std::string& pool) const {
  const Options& options = services_.options;
  const std::string tenant = tenant::TenantOf(pool);
  size_t all = 0;
  size_t of_tenant = 0;
  for (const auto& [name, entry] : pools_) {
    all += entry.sockets.size();
    if (tenant::TenantOf(name) == tenant) of_tenant += entry.sockets.size();
  }
  if (of_tenant >= options.most_slots_of_tenant) {
    return {ENOBUFS, tenant + " has " + std::to_string(of_tenant) +
                         " slots on this gateway, which is the limit of a tenant"};
  }
  if (all >= options.most_slots)
    return {ENOBUFS, "the gateway has " + std::to_string(all) + " slots, which is its limit"};
  return OkStatus();
}

Status SlotSockets::Open(const std::string& pool, Entry& entry, uint32_t slot) {
  if (Status may = MayOpen(pool); !may.ok()) return may;
  if (::mkdir(directory_.c_str(), kTopMode) != 0 && errno != EEXIST) return Failed(directory_);
  if (::chmod(directory_.c_str(), kTopMode) != 0) return Failed(directory_);
  const std::string folder = directory_ + "/" + entry.folder;
  const std::string place = folder + "/" + std::to_string(slot);
  for (const std::string& path : {folder, place}) {
    if (Status made = MakeDirectory(path, entry.rights); !made.ok()) return made;
  }
  const std::string path = place + "/attach.sock";
  Status status =
      attach_.Listen({path, entry.rights.mode, entry.rights.uid, entry.rights.gid}, pool);
  if (status.ok()) entry.sockets[slot] = path;
  return status;
}

void SlotSockets::Close(Entry& entry, uint32_t slot) {
  attach_.StopListening(entry.sockets.at(slot));
  entry.sockets.erase(slot);
  ::rmdir((directory_ + "/" + entry.folder + "/" + std::to_string(slot)).c_str());
}

void SlotSockets::Remove(const std::string& pool) {
  const auto known = pools_.find(pool);
  if (known == pools_.end()) return;
  while (!known->second.sockets.empty()) Close(known->second, known->second.sockets.begin()->first);
  ::rmdir((directory_ + "/" + known->second.folder).c_str());
  pools_.erase(known);
}

void SlotSockets::RemoveLeftovers() const {
  if (directory_.empty()) return;
  std::set<std::string> kept;
  for (const auto& [name, entry] : pools_) {
    kept.insert(directory_ + "/" + entry.folder);
    for (const auto& [slot, path] : entry.sockets) kept.insert(path.substr(0, path.rfind('/')));
  }
  namespace fs = std::filesystem;
  std::error_code error;
  for (const auto& folder : fs::directory_iterator(directory_, error)) {
    if (!kept.contains(folder.path())) {
      fs::remove_all(folder.path(), error);
      continue;
    }
    for (const auto& slot : fs::directory_iterator(folder.path(), error)) {
      if (!kept.contains(slot.path())) fs::remove_all(slot.path(), error);
    }
  }
}

std::vector<std::string> SlotSockets::Paths(const std::string& pool) const {
  std::vector<std::string> paths;
  const auto known = pools_.find(pool);
  if (known == pools_.end()) return paths;
  for (const auto& [slot, path] : known->second.sockets) paths.push_back(path);
  return paths;
}

}  // namespace rocegw::session
