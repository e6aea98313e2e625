// SPDX-License-Identifier: Apache-2.0
#include "agent/donors/donor_folder.h"

#include <dirent.h>
#include <sys/stat.h>

#include <cerrno>
#include <memory>
#include <string_view>
#include <utility>

#include "gateway/base/errno_status.h"
#include "gateway/far/fleet/folder_file.h"

namespace rocegw::agent {
namespace {

// Entries of the folder that are looked at.
constexpr size_t kMostEntries = 256;
constexpr int64_t kGoneNs = far::kGoneSeconds * 1000000000;

}  // namespace

Status DonorFolder::Open() const {
  if (mkdir(path_.c_str(), 0755) != 0 && errno != EEXIST) return ErrnoStatus(path_);
  struct stat state {};
  if (lstat(path_.c_str(), &state) != 0) return ErrnoStatus(path_);
  if (!S_ISDIR(state.st_mode)) return {ENOTDIR, path_ + ": not a directory"};
  if ((state.st_mode & S_IWOTH) != 0)
    return {EPERM, path_ + ": every user can announce donors there; take the permission away"};
  return OkStatus();
}

std::map<std::string, far::Announcement> DonorFolder::Read(TimePoint now, int64_t wall_ns) {
  std::map<std::string, far::Announcement> donors;
  std::map<std::string, Seen> seen;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(path_.c_str()), closedir);
  if (folder == nullptr) return donors;
  for (size_t entries = 0; entries < kMostEntries; ++entries) {
    const dirent* const entry = readdir(folder.get());
    if (entry == nullptr) break;
    const std::string_view file = entry->d_name;
    if (!file.ends_with(far::kAnnouncementEnding)) continue;
    const std::string name(file.substr(0, file.size() - sizeof far::kAnnouncementEnding + 1));
    // A file that is being replaced.
    if (name.starts_with('.')) continue;
    if (!far::IsDonorName(name) || donors.size() == kMostDonors) {
      ++counters_.refused_files;
      continue;
    }
    auto read = far::ReadFolderFile(path_ + "/" + std::string(file));
    if (!read.ok() && read.status().error() == ENOENT) continue;
    auto announcement =
        read.ok() ? far::ReadAnnouncement(read.value().text) : std::optional<far::Announcement>();
    if (!announcement) {
      ++counters_.refused_files;
      continue;
    }
    const int64_t changed = read.value().changed_ns;
    const auto before = seen_.find(name);
    const bool is_new = before == seen_.end();
    Seen& known = seen[name];
    known = is_new || before->second.changed_ns != changed ? Seen{changed, now} : before->second;
    const bool is_left_over = is_new && wall_ns - changed > kGoneNs;
    if (is_left_over) known.at = now - Nanoseconds(kGoneNs) - Nanoseconds(1);
    if (now - known.at > Nanoseconds(kGoneNs)) continue;
    donors[name] = std::move(*announcement);
  }
  seen_ = std::move(seen);
  counters_.donors = donors.size();
  return donors;
}

Status DonorFolder::Order(const std::string& name, const far::DonorOrders& orders) {
  const std::string path = path_ + "/" + name + far::kOrdersEnding;
  if (!ordered_.contains(name)) {
    const auto file = far::ReadFolderFile(path);
    const auto left = file.ok() ? far::ReadOrders(file.value().text) : std::nullopt;
    if (left) ordered_[name] = *left;
  }
  const auto known = ordered_.find(name);
  if (known != ordered_.end() && known->second == orders) return OkStatus();
  if (Status status = far::ReplaceFolderFile(path, far::ToText(orders)); !status.ok())
    return status;
  // Names of donors come and go; a forgotten one is read from its file.
  if (ordered_.size() >= kMostDonors) ordered_.clear();
  ordered_[name] = orders;
  return OkStatus();
}

}  // namespace rocegw::agent
