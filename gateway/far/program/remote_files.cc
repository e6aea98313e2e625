// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/program/remote_files.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "gateway/process/http/metric_families.h"

namespace rocegw::far {
namespace {

// Names and inodes are in the memory of this process, about 400 bytes each.
constexpr uint64_t kBytesForEachName = 16 << 10;
constexpr uint64_t kFewestNames = 4096;
constexpr uint64_t kMostNames = 1 << 22;
constexpr char kNamesEnding[] = ".names";  // the journal, beside a disk copy

}  // namespace

RemoteFiles::RemoteFiles() = default;

RemoteFiles::~RemoteFiles() { Stop(); }

// Opens the journal of the names beside the disk copy. Both are there, or none is.
StatusOr<RemoteFiles::KeptNames> RemoteFiles::OpenNames(const SessionArguments& arguments) {
  const std::string path = arguments.disk_copy + kNamesEnding;
  KeptNames names;
  std::string records;
  bool exists = false;
  auto journal = Journal::Open(path, arguments.size, &records, &exists);
  if (!journal.ok()) return journal.status();
  names.journal = std::move(journal.value());
  if (!names.files.Apply(records)) return Status(EINVAL, path + ": a damaged file");
  const bool has_copy = access(arguments.disk_copy.c_str(), F_OK) == 0;
  if (has_copy && !exists) {
    return Status(EEXIST, arguments.disk_copy + ": " + path +
                              " is missing, which has the names of its files; remove the copy to "
                              "begin anew");
  }
  bool has_data = false;
  for (const auto& [number, file] : names.files.data) has_data = has_data || !file.blocks.empty();
  if (!has_copy && has_data) {
    return Status(ENOENT, arguments.disk_copy + ": is missing, and " + path +
                              " names files in it; remove the latter to begin anew");
  }
  // Made before the copy: a copy without names is somebody else's.
  if (!exists) {
    if (Status status = names.journal->Replace(""); !status.ok()) return status;
  }
  return names;
}

Status RemoteFiles::Start(FilesArguments& arguments, int signals) {
  if (arguments.keep && arguments.disk_copy.empty()) {
    return {EINVAL, "--keep needs --disk-copy, which holds the files"};
  }
  KeptNames names;
  if (arguments.keep) {
    auto opened = OpenNames(arguments);
    if (!opened.ok()) return opened.status();
    names = std::move(opened.value());
  }
  auto session = OpenSession(arguments, signals);
  if (!session.ok()) return session.status();
  session_ = std::move(session.value());
  if (!arguments.keep) disk_copy_ = arguments.disk_copy;
  space_ = MakeSpace(*session_);
  FileServer::Limits limits;
  limits.size = std::min(arguments.size, session_->dispatcher().size());
  limits.most_in_flight = kMostInFlight;
  limits.most_names = std::clamp(limits.size / kBytesForEachName, kFewestNames, kMostNames);
  limits.write_back = arguments.write_back;
  server_ = std::make_unique<FileServer>(*space_, limits);
  Status status;
  if (arguments.keep) {
    status = server_->Keep(std::move(names.journal), std::move(names.files));
    if (!status.ok()) return status;
  }
  loop_ = std::make_unique<FuseLoop>();
  status = loop_->Mount(*server_, arguments.directory, arguments.allow_other);
  if (!status.ok()) return status;
  metrics_ = std::make_unique<FilesMetrics>(*server_, *session_, process::NowNanoseconds());
  page_ = std::make_unique<process::MetricsServer>(*metrics_, readiness_);
  if (!arguments.metrics.empty()) {
    if (status = page_->Start(arguments.metrics); !status.ok()) return status;
  }
  serving_ = std::thread([this] {
    loop_->Run();
    kill(getpid(), SIGTERM);
  });
  readiness_.SetReady();
  return OkStatus();
}

void RemoteFiles::Stop() {
  if (page_ != nullptr) page_->Stop();
  if (loop_ != nullptr) loop_->Stop();
  if (serving_.joinable()) serving_.join();
  // Replies of transfers in flight need the mount; the transfers need the session.
  if (server_ != nullptr) {
    server_->data().WaitUntilIdle();
    server_->StopKeeping();
  }
  page_.reset();
  metrics_.reset();
  loop_.reset();
  server_.reset();
  space_.reset();
  session_.reset();
  if (!disk_copy_.empty()) unlink(disk_copy_.c_str());
  disk_copy_.clear();
}

}  // namespace rocegw::far
