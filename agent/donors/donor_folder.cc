// SPDX-License-Identifier: Apache-2.0
#include "agent/donors/donor_folder.h"

#include <dirent.h>
#include <spdlog/spdlog.h>
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
  Problems problems;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(path_.c_str()), closedir);
  if (folder == nullptr) return donors;
  for (size_t entries = 0; entries < kMostEntries; ++entries) {
    const dirent* const entry = readdir(folder.get());
    if (entry == nullptr) break;
    const std::string_view file = entry->d_name;
    had_donors_ = had_donors_ || file.ends_with(far::kOrdersEnding);
    if (!file.ends_with(far::kAnnouncementEnding)) continue;
    const std::string name(file.substr(0, file.size() - sizeof far::kAnnouncementEnding + 1));
    // A file that is being replaced.
    if (name.starts_with('.')) continue;
    if (!far::IsDonorName(name)) {
      Refuse("", "its name is no donor's name", problems);
      continue;
    }
    if (donors.size() == kMostDonors) {
      Refuse(name, "the host has too many donors", problems);
      continue;
    }
    auto read = far::ReadFolderFile(path_ + "/" + std::string(file));
    if (!read.ok() && read.status().error() == ENOENT) continue;
    auto announcement =
        read.ok() ? far::ReadAnnouncement(read.value().text) : std::optional<far::Announcement>();
    const char* const problem =
        announcement ? far::ProblemOf(*announcement) : "it is no announcement";
    if (problem != nullptr) {
      Refuse(name, problem, problems);
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
  problems_ = std::move(problems);
  had_donors_ = had_donors_ || !donors.empty();
  counters_.donors = donors.size();
  return donors;
}

void DonorFolder::Refuse(const std::string& name, const std::string& why, Problems& problems) {
  ++counters_.refused_files;
  const auto before = problems_.find(name);
  if (before == problems_.end() || before->second != why) {
    const std::string file = name.empty() ? "a file" : name + far::kAnnouncementEnding;
    spdlog::warn("{} in {} is not reported: {}", file, path_, why);
  }
  problems[name] = why;
}

Status DonorFolder::Order(const std::string& name, const far::DonorOrders& orders) {
  const std::string path = path_ + "/" + name + far::kOrdersEnding;
  // A cleaned folder has no orders.
  const auto file = far::ReadFolderFile(path);
  if (file.ok() && far::ReadOrders(file.value().text) == orders) return OkStatus();
  return far::ReplaceFolderFile(path, far::ToText(orders));
}

}  // namespace rocegw::agent
