// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/session/session.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "gateway/far/session/naming/fleet_donors.h"

namespace rocegw::far {
namespace {

constexpr uint32_t kMostSegments = 16;
constexpr uint64_t kMostMeasured = 8 << 20;
constexpr std::chrono::seconds kLongestSearch(30);

}  // namespace

StatusOr<std::unique_ptr<Session>> Session::Open(const Settings& settings) {
  std::unique_ptr<Session> session(new Session(settings));
  if (Status status = session->Start(); !status.ok()) return status;
  return session;
}

Session::~Session() { Stop(); }

Dispatcher::DiskEnd Session::Stop() {
  if (dispatcher_ == nullptr) return {};
  dispatcher_->WaitUntilIdle();
  if (caretaker_ != nullptr) caretaker_->Stop();
  for (const auto& poller : pollers_) poller->Stop();
  return dispatcher_->StopDisk();
}

// Asks the agent of this host, if it is to name the donors.
Status Session::FindDonors() {
  // Donors that have the data of an earlier process may have no room besides; further ones are
  // found later.
  const bool known =
      settings_.kept && !settings_.kept->donors.empty() && !settings_.kept_data.empty();
  if (!settings_.donors_dir.empty() && !known) {
    auto found = FindFleetDonors(settings_, settings_.slabs * settings_.merge.slab_bytes,
                                 settings_.replicas, kLongestSearch, settings_.cancel_fd);
    if (!found.ok()) return found.status();
    settings_.donors = std::move(found.value());
    if (settings_.donors.empty()) return {ENOENT, "the fleet has no donors"};
    if (settings_.donors.size() > kMostDonors) settings_.donors.resize(kMostDonors);
  }
  return OkStatus();
}

// Adds the donors of an earlier process that are not named any more: they have its data. Returns
// their numbers.
StatusOr<std::vector<uint32_t>> Session::FindKeptDonors() {
  std::vector<uint32_t> numbers;
  if (!settings_.kept) return numbers;
  const Placement& kept = *settings_.kept;
  if (kept.slab_bytes != settings_.merge.slab_bytes || kept.slabs.size() != settings_.slabs) {
    return Status{EINVAL, "the files were kept in " + std::to_string(kept.slabs.size()) +
                              " slabs of " + std::to_string(kept.slab_bytes) + " bytes"};
  }
  if (kept.tenant != settings_.tenant) {
    return Status{EINVAL, "the files were kept for tenant " + kept.tenant};
  }
  std::vector<Settings::Donor>& known = settings_.donors;
  for (const Placement::Donor& donor : kept.donors) {
    const auto same = std::find_if(known.begin(), known.end(), [&](const Settings::Donor& named) {
      return named.host == donor.host && named.port == donor.port;
    });
    numbers.push_back(static_cast<uint32_t>(same - known.begin()));
    if (same != known.end()) continue;
    known.push_back({donor.host, donor.port, donor.failure_domain, donor.name});
  }
  if (known.size() > kMostDonors) {
    return Status{EINVAL, "more than 64 donors, with those that the files are kept at"};
  }
  return numbers;
}

// Returns a connection that has resolved the address of one of the donors, by the device that
// reaches it.
StatusOr<std::unique_ptr<Connection>> Session::FindDevice(
    const std::vector<Settings::Donor>& donors) {
  Status status;
  for (const Settings::Donor& donor : donors) {
    const auto deadline = Clock::now() + std::chrono::milliseconds(settings_.connect_timeout_ms);
    auto found = std::make_unique<Connection>(settings_.cancel_fd);
    status = found->Resolve(donor.host, donor.port, deadline);
    if (status.ok()) return found;
    if (status.error() == ECANCELED) return status;
    status = {status.error(), donor.host + ": " + status.text()};
  }
  return status;
}

Status Session::OpenDevice(const std::vector<Settings::Donor>& donors) {
  auto found = FindDevice(donors);
  if (!found.ok()) return found.status();
  Status status = memory_.Use(std::move(found.value()));
  if (status.ok()) status = StartPollers();
  if (!status.ok()) CloseDevice();
  return status;
}

Status Session::StartPollers() {
  // Transfers, and the messages of both directions, of all donors that may share a poller.
  const size_t sharing = (settings_.MostDonors() + settings_.pollers - 1) / settings_.pollers;
  const size_t entries = sharing * (Dispatcher::kSendDepth + 2 * Connection::kMessages);
  for (const auto& poller : pollers_) {
    Status status = poller->Start(
        memory_.device()->context(), static_cast<int>(entries),
        [this](const ibv_wc* completions, size_t count) { OnCompletions(completions, count); });
    if (!status.ok()) return status;
  }
  return OkStatus();
}

void Session::CloseDevice() {
  for (const auto& poller : pollers_) poller->Stop();
  (void)memory_.Use(nullptr);
}

// Opens the disk copy, if there is to be one, and finds the data that it has already, and the pages
// that it does not have although they were written.
StatusOr<std::unique_ptr<DiskCopy>> Session::OpenDisk(Ranges& found, Ranges& lost) {
  if (settings_.disk_path.empty()) return std::unique_ptr<DiskCopy>();
  const uint64_t bytes = settings_.slabs * settings_.merge.slab_bytes;
  auto file = OpenCopyFile(settings_.disk_path, bytes, settings_.disk_use);
  if (!file.ok()) return file.status();
  const auto add = [&found](uint64_t begin, uint64_t end) { found.push_back({begin, end}); };
  if (file.value()->FindData(add) != 0 || file.value()->FindLost(lost) != 0) {
    return Status{errno, settings_.disk_path + ": " + strerror(errno)};
  }
  auto disk = std::make_unique<DiskCopy>(std::move(file.value()), settings_.disk_queue_bytes,
                                         settings_.merge.most_bytes);
  if (Status status = disk->Start(); !status.ok()) return status;
  return disk;
}

Status Session::Start() {
  if (Status status = FindDonors(); !status.ok()) return status;
  const auto kept_donors = FindKeptDonors();
  if (!kept_donors.ok()) return kept_donors.status();
  const auto donor_count = static_cast<uint32_t>(settings_.donors.size());
  if (settings_.pollers == 0) settings_.pollers = donor_count;
  settings_.pollers = std::min(settings_.pollers, donor_count);
  auto opener = FindDevice(settings_.donors);
  if (!opener.ok()) return opener.status();
  ibv_device_attr device{};
  if (const int error = ibv_query_device(opener.value()->context(), &device); error != 0) {
    return {error, std::string("cannot query the device: ") + strerror(error)};
  }
  uint32_t segments = std::min(kMostSegments, static_cast<uint32_t>(device.max_sge));
  if (device.max_sge_rd > 0) {
    segments = std::min(segments, static_cast<uint32_t>(device.max_sge_rd));
  }
  settings_.merge.most_segments = std::max(segments, 1u);
  Status status = memory_.Make(settings_.StagingBytes(), settings_.pool_bytes);
  if (status.ok()) status = memory_.Use(std::move(opener.value()));
  if (!status.ok()) return status;
  if (settings_.copy_limit_bytes == 0) {
    settings_.copy_limit_bytes = memory_.MeasureCopyLimit(kMostMeasured);
  }
  Ranges recovered;
  Ranges lost;
  auto disk = OpenDisk(recovered, lost);
  if (!disk.ok()) return disk.status();
  dispatcher_ = std::make_unique<Dispatcher>(settings_, memory_, std::move(disk.value()),
                                             [this] { caretaker_->Wake(); });
  for (const CopyFile::Range& range : recovered) dispatcher_->Recover(range.begin, range.end);
  if (!lost.empty()) dispatcher_->RecoverLost(lost);
  if (settings_.kept && settings_.kept_data.empty()) {
    dispatcher_->EndEarlier(*settings_.kept, kept_donors.value());
    settings_.kept.reset();
  } else if (settings_.kept) {
    dispatcher_->Continue(*settings_.kept, kept_donors.value(), settings_.kept_data);
  }
  for (uint32_t number = 0; number < settings_.pollers; number++) {
    pollers_.push_back(std::make_unique<Poller>(settings_.polling));
  }
  caretaker_ = std::make_unique<Caretaker>(
      settings_, memory_, pollers_, *dispatcher_,
      Caretaker::DeviceCalls{[this] { CloseDevice(); },
                             [this](const auto& donors) { return OpenDevice(donors); }});
  if (status = StartPollers(); !status.ok()) return status;
  if (status = caretaker_->Start(); !status.ok()) return status;
  return caretaker_->WaitUntilPlaced();
}

void Session::OnCompletions(const ibv_wc* completions, size_t count) {
  for (size_t number = 0; number < count; number++) {
    const ibv_wc& completion = completions[number];
    auto* what = reinterpret_cast<Completable*>(completion.wr_id);
    const bool ok = completion.status == IBV_WC_SUCCESS;
    if (what->kind == Completable::Kind::kTransfer) {
      dispatcher_->OnTransfer(static_cast<Transfer&>(*what), ok);
      continue;
    }
    Connection& connection = *what->connection;
    connection.OnCompletion(*what);
    if (what->kind == Completable::Kind::kSentMessage || !ok) continue;
    if (caretaker_->OnMessage(connection, connection.Received(*what, completion.byte_len))) {
      connection.Rearm(*what);
    }
  }
  dispatcher_->Completed();
}

void Session::AddStatistics(rocegw_memory_statistics& statistics) {
  dispatcher_->AddStatistics(statistics);
  for (const auto& poller : pollers_) {
    statistics.poll_looks += poller->looks();
    statistics.poll_wakeups += poller->wakeups();
    statistics.poll_completions += poller->completions();
    statistics.poll_cpu_ns += poller->cpu_nanoseconds();
  }
}

}  // namespace rocegw::far
