// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/program/remote_files.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

#include "gateway/far/session/donor_name.h"

namespace rocegw::far {
namespace {

// Registered memory for data on its way between the kernel and the donors.
constexpr uint64_t kPoolBytes = 16 << 20;
constexpr uint64_t kMostInFlight = 32 << 20;
// Names and inodes are in the memory of this process, about 400 bytes each.
constexpr uint64_t kBytesForEachName = 16 << 10;
constexpr uint64_t kFewestNames = 4096;
constexpr uint64_t kMostNames = 1 << 22;

class SessionSpace final : public Space {
 public:
  explicit SessionSpace(Dispatcher& dispatcher) : dispatcher_(dispatcher) {}

  int Submit(Direction direction, uint64_t offset, uint8_t* buffer, uint64_t length, Done done,
             void* argument) override {
    return dispatcher_.Submit(direction, offset, buffer, length, done, argument);
  }
  uint8_t* Allocate(uint64_t bytes) override {
    return static_cast<uint8_t*>(dispatcher_.Allocate(bytes));
  }
  void Free(uint8_t* memory) override { dispatcher_.Free(memory); }
  void Flush(Done done, void* argument) override { dispatcher_.Flush(done, argument); }

 private:
  Dispatcher& dispatcher_;
};

}  // namespace

RemoteFiles::RemoteFiles() = default;

RemoteFiles::~RemoteFiles() { Stop(); }

Status RemoteFiles::OpenSession(const FilesArguments& arguments) {
  std::vector<Settings::Donor> read;
  std::vector<rocegw_memory_donor> donors;
  read.reserve(arguments.donors.size());
  for (const std::string& text : arguments.donors) {
    auto donor = ReadDonor(text);
    if (!donor.ok()) return donor.status();
    read.push_back(std::move(donor.value()));
    const std::string& port = read.back().port;
    donors.push_back({read.back().host.c_str(), port.empty() ? nullptr : port.c_str()});
  }
  rocegw_memory_options options = ROCEGW_MEMORY_DEFAULTS;
  options.donors = donors.data();
  options.donor_count = donors.size();
  options.size = arguments.size;
  options.replicas = arguments.replicas;
  options.tenant = arguments.tenant.c_str();
  options.slab_bytes = arguments.slab_bytes;
  options.timeout_ms = arguments.timeout_ms;
  options.pool_bytes = kPoolBytes;
  options.most_queued_bytes = 2 * kMostInFlight;
  if (!arguments.disk_copy.empty()) options.disk_copy = arguments.disk_copy.c_str();
  const auto settings = CheckOptions(options, sizeof options);
  if (!settings.ok()) return settings.status();
  auto session = Session::Open(settings.value());
  if (!session.ok()) return session.status();
  session_ = std::move(session.value());
  disk_copy_ = arguments.disk_copy;
  return OkStatus();
}

Status RemoteFiles::Start(const FilesArguments& arguments) {
  if (Status status = OpenSession(arguments); !status.ok()) return status;
  space_ = std::make_unique<SessionSpace>(session_->dispatcher());
  FileServer::Limits limits;
  limits.size = std::min(arguments.size, session_->dispatcher().size());
  limits.most_in_flight = kMostInFlight;
  limits.most_names = std::clamp(limits.size / kBytesForEachName, kFewestNames, kMostNames);
  limits.write_back = arguments.write_back;
  server_ = std::make_unique<FileServer>(*space_, limits);
  loop_ = std::make_unique<FuseLoop>();
  Status status = loop_->Mount(*server_, arguments.directory, arguments.allow_other);
  if (!status.ok()) return status;
  const auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
  metrics_ = std::make_unique<FilesMetrics>(
      *server_, *session_,
      std::chrono::duration_cast<std::chrono::nanoseconds>(since_1970).count());
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
  if (server_ != nullptr) server_->data().WaitUntilIdle();
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
