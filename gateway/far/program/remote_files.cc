// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/program/remote_files.h"

#include <signal.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "gateway/far/program/kept_names.h"
#include "gateway/process/http/metric_families.h"

namespace rocegw::far {
namespace {

// Names and inodes are in the memory of this process, about 400 bytes each.
constexpr uint64_t kBytesForEachName = 16 << 10;
constexpr uint64_t kFewestNames = 4096;
constexpr uint64_t kMostNames = 1 << 22;

}  // namespace

RemoteFiles::RemoteFiles() = default;

RemoteFiles::~RemoteFiles() { Stop(); }

Status RemoteFiles::Start(FilesArguments& arguments, int signals) {
  if (!arguments.keep && !arguments.names.empty()) return {EINVAL, "--names is for --keep"};
  KeptNames names;
  if (arguments.keep) {
    auto opened = OpenKeptNames(arguments.names, arguments.disk_copy, arguments.size);
    if (!opened.ok()) return opened.status();
    names = std::move(opened.value());
  }
  const bool continues = !names.space.data.empty();
  auto session = OpenSession(arguments, signals, std::move(names.space));
  if (!session.ok()) return session.status();
  session_ = std::move(session.value());
  if (continues) {
    rocegw_memory_statistics state{};
    session_->AddStatistics(state);
    spdlog::info(
        "continues with files of an earlier command: {} bytes copied between replicas, {} pages "
        "lost",
        state.agreed_bytes, state.lost_pages);
  }
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
