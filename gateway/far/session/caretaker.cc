// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/session/caretaker.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "gateway/far/session/naming/fleet_donors.h"

namespace rocegw::far {
namespace {

constexpr auto kTick = std::chrono::milliseconds(50);
constexpr auto kReconnectAfter = std::chrono::seconds(1);
constexpr auto kRenewEvery = std::chrono::seconds(2);  // leases last at least 6 seconds
constexpr auto kLongestFinish = std::chrono::seconds(30);
constexpr auto kLongestClose = std::chrono::seconds(1);
constexpr size_t kLeasesAtOnce = 8;  // fewer than buffers for messages
// Pauses between questions for further donors, while a slab needs one and otherwise.
constexpr auto kAskSoon = std::chrono::seconds(3);
constexpr auto kAskEvery = std::chrono::seconds(60);
constexpr auto kLongestAnswer = std::chrono::seconds(2);  // a session that ends waits for it
// Renewals that a donor has not answered; more than the buffers of both sides hold.
constexpr int kMostRenewals = 48;

}  // namespace

Caretaker::Caretaker(const Settings& settings, RegisteredMemory& memory, Pollers& pollers,
                     Dispatcher& dispatcher, DeviceCalls device)
    : settings_(settings),
      memory_(memory),
      pollers_(pollers),
      dispatcher_(dispatcher),
      device_(std::move(device)),
      donors_(settings.donors),
      connect_at_(settings.donors.size()),
      tried_(settings.donors.size(), false) {}

Status Caretaker::Start() {
  wake_fd_ = UniqueFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  stop_fd_ = UniqueFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake_fd_.valid() || !stop_fd_.valid()) return {errno, "no eventfd"};
  caring_ = std::thread([this] { Care(); });
  connecting_ = std::thread([this] { Connect(); });
  if (!settings_.donors_dir.empty()) asking_ = std::thread([this] { Ask(); });
  if (settings_.save_placement) saving_ = std::thread([this] { SavePlacement(); });
  return OkStatus();
}

bool Caretaker::IsCancelled() const {
  pollfd cancel{settings_.cancel_fd, POLLIN, 0};
  return poll(&cancel, 1, 0) > 0;
}

Status Caretaker::WaitUntilPlaced() {
  std::unique_lock lock(mutex_);
  const auto end = Clock::now() + settings_.LongestPlacing();
  const auto decided = [this] {
    const bool all_tried = std::find(tried_.begin(), tried_.end(), false) == tried_.end();
    return agreed_ && (placed_ || (all_tried && stuck_));
  };
  bool in_time = decided();
  // Replicas agree at last: each copy goes on, or its donor is lost.
  while (!in_time && (agreeing_ || Clock::now() < end)) {
    if (IsCancelled()) return {ECANCELED, "stopped"};
    in_time = changed_.wait_for(lock, kTick, decided);
  }
  size_t connected = 0;
  for (uint32_t donor = 0; donor < donors_.size(); donor++) connected += IsUp(donor);
  // A slab that lost all replicas does not keep the others from being served.
  const bool continued = settings_.kept && agreed_ && connected != 0;
  opened_ = placed_ || continued;
  if (opened_) {
    dispatcher_.AcceptLosses();
    return OkStatus();
  }
  if (connected < settings_.replicas) {
    return {last_connect_.ok() ? ENODEV : last_connect_.error(),
            std::to_string(connected) + " of " + std::to_string(donors_.size()) +
                " donors could be reached; the last error: " + last_connect_.text()};
  }
  if (!in_time) return {ETIMEDOUT, "the donors have not granted all leases in time"};
  return {ENOSPC, "the donors have not as much memory for tenant " + settings_.tenant};
}

// Gives the disk copy what it lacks, as long as that goes on, for a time that those who stop a
// service grant it.
void Caretaker::FinishDisk() {
  if (settings_.disk_path.empty() || settings_.disk_use == CopyUse::kTemporary) return;
  uint64_t lacking = dispatcher_.OffDiskPages();
  if (lacking == 0) return;
  {
    const std::lock_guard lock(mutex_);
    finish_disk_ = true;
    Wake();
  }
  const Clock::time_point end = Clock::now() + kLongestFinish;
  Clock::time_point progress = Clock::now();
  const auto timeout = std::chrono::milliseconds(settings_.timeout_ms);
  while (lacking != 0 && Clock::now() < end && Clock::now() - progress < timeout) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    const uint64_t now_lacking = dispatcher_.OffDiskPages();
    if (now_lacking < lacking) progress = Clock::now();
    lacking = now_lacking;
  }
}

// Has the donors end the session's leases at once: otherwise they keep them for a while, in case
// that the gateway of this host is only restarted.
void Caretaker::Close() {
  const Clock::time_point end = Clock::now() + kLongestClose;
  Message message;
  message.type = MessageType::kClose;
  for (uint32_t donor = 0; donor < donors_.size(); donor++) {
    if (IsUp(donor)) SendTo(donor, message);
  }
  for (uint32_t donor = 0; donor < donors_.size(); donor++) {
    // A donor that has got the message disconnects.
    while (IsUp(donor) && !dispatcher_.links()[donor].connection->AreMessagesSent() &&
           Clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
}

void Caretaker::Stop() {
  if (wake_fd_.valid()) FinishDisk();
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    changed_.notify_all();
  }
  if (!wake_fd_.valid()) return;
  Wake();
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(stop_fd_.get(), &one, sizeof one);
  if (connecting_.joinable()) connecting_.join();
  if (asking_.joinable()) asking_.join();
  if (saving_.joinable()) saving_.join();
  if (caring_.joinable()) caring_.join();
  dispatcher_.StopDisk();
  const auto quiet = [this](uint32_t donor) {
    return std::unique_lock(pollers_[donor % pollers_.size()]->quiet());
  };
  // Donors keep the leases for a later process until they expire.
  if (!settings_.save_placement || (!opened_ && !settings_.kept)) Close();
  for (uint32_t donor = 0; donor < donors_.size(); donor++) dispatcher_.FailLink(donor, false);
  // Transfers of an interrupted copy complete or are abandoned after the timeout.
  const auto any_connection = [this] {
    const std::lock_guard lock(dispatcher_.mutex());
    return std::any_of(dispatcher_.links().begin(), dispatcher_.links().end(),
                       [](const DonorLink& link) { return link.connection != nullptr; });
  };
  while (any_connection()) {
    dispatcher_.CheckLinks(quiet);
    if (any_connection()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  wake_fd_.Reset();
}

void Caretaker::Wake() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wake_fd_.get(), &one, sizeof one);
}

bool Caretaker::OnMessage(const Connection& connection, const std::optional<Message>& message) {
  const auto donor = dispatcher_.TakeAnswer(connection, message);
  const std::lock_guard lock(mutex_);
  // As many as were asked for: no donor takes the place of another one's answers.
  if (donor) incoming_.push_back({*donor, *message});
  Wake();
  return donor.has_value();
}

// Caring -----------------------------------------------------------------------------------------

void Caretaker::Care() {
  pthread_setname_np(pthread_self(), "rocegw-far-care");
  const auto quiet = [this](uint32_t donor) {
    return std::unique_lock(pollers_[donor % pollers_.size()]->quiet());
  };
  for (;;) {
    HandleEvents();
    {
      const std::lock_guard lock(mutex_);
      if (stop_) return;
      if (std::exchange(finish_disk_, false)) rounds_.Resume();
    }
    // Messages of a connection are handled before it is closed: a later one never sees them.
    HandleMessages();
    TakeFound();
    dispatcher_.CheckLinks(quiet);
    dispatcher_.CheckDisk();
    LeaseForSlabs();
    ReturnDropped();
    RenewLeases();
    ContinueCopy();
    dispatcher_.Completed();
  }
}

// Waits for a tick, a wake-up or an event of the device or a connection.
void Caretaker::HandleEvents() {
  // The connecting thread closes the device only after it was lost, which only this thread notices.
  const bool watched = [this] {
    const std::lock_guard lock(mutex_);
    return !device_lost_;
  }();
  const int device_fd = watched ? memory_.device()->context()->async_fd : -1;
  std::vector<pollfd> ready{{wake_fd_.get(), POLLIN, 0}, {device_fd, POLLIN, 0}};
  std::vector<uint32_t> donors{0, 0};
  {
    const std::lock_guard lock(dispatcher_.mutex());
    for (uint32_t donor = 0; donor < dispatcher_.links().size(); donor++) {
      const DonorLink& link = dispatcher_.links()[donor];
      if (link.state != DonorLink::State::kUp) continue;
      ready.push_back({link.connection->event_fd(), POLLIN, 0});
      donors.push_back(donor);
    }
  }
  poll(ready.data(), ready.size(), static_cast<int>(kTick.count()));
  uint64_t wakeups = 0;
  [[maybe_unused]] const ssize_t got = read(wake_fd_.get(), &wakeups, sizeof wakeups);
  if (ready[1].revents != 0 && TakeDeviceEvents()) OnDeviceLost();
  for (size_t number = 2; number < ready.size(); number++) {
    if (ready[number].revents == 0) continue;
    // Only this thread closes connections.
    Connection* connection = dispatcher_.links()[donors[number]].connection.get();
    if (!connection->TakeEvents() || !watched) continue;
    if (memory_.IsDeviceGone()) {
      OnDeviceLost();
    } else {
      dispatcher_.FailLink(donors[number], false);
    }
  }
}

// Returns whether the device has ended.
bool Caretaker::TakeDeviceEvents() {
  ibv_context* const context = memory_.device()->context();
  fcntl(context->async_fd, F_SETFL, fcntl(context->async_fd, F_GETFL) | O_NONBLOCK);
  ibv_async_event event{};
  while (ibv_get_async_event(context, &event) == 0) ibv_ack_async_event(&event);
  return memory_.IsDeviceGone();
}

void Caretaker::OnDeviceLost() {
  {
    const std::lock_guard lock(mutex_);
    if (device_lost_) return;
    device_lost_ = true;
    changed_.notify_all();
  }
  dispatcher_.DeviceLost();
}

void Caretaker::HandleMessages() {
  std::deque<Incoming> messages;
  {
    const std::lock_guard lock(mutex_);
    messages.swap(incoming_);
  }
  // In their order: a report of free memory does not count leases that were asked for after it.
  for (const auto& [donor, message] : messages) {
    if (!IsUp(donor)) continue;
    if (message.type == MessageType::kLeased) OnLeased(donor, message);
    if (message.type == MessageType::kRenewed) OnRenewed(donor, message);
  }
}

void Caretaker::OnRenewed(uint32_t donor, const Message& message) {
  const auto asked = static_cast<uint64_t>(
      std::count_if(leases_.begin(), leases_.end(),
                    [donor](const auto& lease) { return lease.second.donor == donor; }));
  const uint64_t bytes = asked * settings_.merge.slab_bytes;
  const std::lock_guard lock(dispatcher_.mutex());
  dispatcher_.links()[donor].free_bytes = message.free_bytes - std::min(message.free_bytes, bytes);
  dispatcher_.links()[donor].draining = message.draining;
}

void Caretaker::OnLeased(uint32_t donor, const Message& message) {
  const auto asked = leases_.find(static_cast<uint32_t>(message.id));
  if (asked == leases_.end() || asked->second.donor != donor) return;
  leases_.erase(asked);
  if (message.error != 0) {
    const std::lock_guard lock(dispatcher_.mutex());
    dispatcher_.links()[donor].free_bytes = 0;  // until its next report
    return;
  }
  Replica replica;
  replica.donor = donor;
  replica.lease = message.lease;
  replica.address = message.address;
  replica.key = message.key;
  dispatcher_.AddReplica(static_cast<uint32_t>(message.id), replica);
}

// Asks for memory for slabs that lack a replica.
void Caretaker::LeaseForSlabs() {
  if (dispatcher_.IsSuspended()) return;
  const Clock::time_point now = Clock::now();
  std::vector<uint32_t> silent;
  std::erase_if(leases_, [&](const auto& entry) {
    const auto& lease = entry.second;
    if (!IsUp(lease.donor)) return true;
    if (now > lease.deadline) silent.push_back(lease.donor);
    return now > lease.deadline;
  });
  for (const uint32_t donor : silent) dispatcher_.FailLink(donor, true);

  std::vector<std::pair<uint32_t, uint32_t>> wanted;  // slab, donor
  bool placed = true;
  bool stuck = false;
  bool needs_donors = false;
  {
    const std::lock_guard lock(dispatcher_.mutex());
    std::vector<DonorOffer> offers = dispatcher_.OffersLocked();
    const std::vector<Slab>& slabs = dispatcher_.slabs();
    for (uint32_t number = 0; number < slabs.size(); number++) {
      if (!LacksReplica(offers, slabs[number], settings_.replicas)) continue;
      const bool lacks = slabs[number].replicas().size() < settings_.replicas;
      placed = placed && !lacks;
      if (leases_.contains(number) || leases_.size() + wanted.size() >= kLeasesAtOnce) continue;
      const auto donor = ChooseDonor(offers, slabs[number], settings_.merge.slab_bytes);
      if (!donor) {
        stuck = stuck || lacks;
        needs_donors = true;
        continue;
      }
      offers[*donor].free_bytes -= settings_.merge.slab_bytes;
      dispatcher_.links()[*donor].free_bytes = offers[*donor].free_bytes;
      wanted.emplace_back(number, *donor);
    }
  }
  for (const auto& [slab, donor] : wanted) {
    Message message;
    message.type = MessageType::kLease;
    message.id = slab;
    message.bytes = settings_.merge.slab_bytes;
    if (SendTo(donor, message) != 0) continue;
    leases_[slab] = {donor, now + std::chrono::milliseconds(settings_.timeout_ms)};
  }
  const bool agreeing = dispatcher_.IsAgreeing();
  const std::lock_guard lock(mutex_);
  needs_donors_ = needs_donors;
  agreeing_ = agreeing;
  agreed_ = !agreeing;
  placed_ = placed;
  stuck_ = stuck && leases_.empty();
  if (placed_ || stuck_) changed_.notify_all();
}

// Returns the leases of replicas that have moved away from draining donors, and of surplus ones.
void Caretaker::ReturnDropped() {
  if (dispatcher_.IsSuspended()) return;
  for (const Dispatcher::Dropped& dropped : dispatcher_.DropReplicas()) dropped_.push_back(dropped);
  // A later process must not look for data where other data may be by then.
  if (!dispatcher_.IsPlacementSaved()) return;
  std::erase_if(dropped_, [this](const Dispatcher::Dropped& dropped) {
    if (!IsUp(dropped.donor)) return true;  // its leases have ended
    {
      const std::lock_guard lock(dispatcher_.mutex());
      if (dispatcher_.IsBusyLocked(dropped.slab, dropped.donor)) return false;
    }
    Message message;
    message.type = MessageType::kReturn;
    message.lease = dropped.lease;
    return SendTo(dropped.donor, message) == 0;
  });
}

void Caretaker::RenewLeases() {
  const Clock::time_point now = Clock::now();
  if (now < renew_at_) return;
  renew_at_ = now + kRenewEvery;
  for (uint32_t donor = 0; donor < dispatcher_.links().size(); donor++) {
    const bool ask = [&] {
      const std::lock_guard lock(dispatcher_.mutex());
      const DonorLink& link = dispatcher_.links()[donor];
      return link.state == DonorLink::State::kUp && link.renewals_asked < kMostRenewals;
    }();
    if (ask) SendTo(donor, Message{});
  }
}

// Finds a replica to restore from what is there, or else a slab that the disk copy lacks pages of.
void Caretaker::FindCopy() {
  const Clock::time_point now = Clock::now();
  const bool disk_up = dispatcher_.IsDiskUp();
  if (now >= copy_at_) {
    const std::lock_guard lock(dispatcher_.mutex());
    const std::vector<Slab>& slabs = dispatcher_.slabs();
    // Requests wait for replicas that are to agree.
    const bool agreeing = std::any_of(slabs.begin(), slabs.end(),
                                      [](const Slab& slab) { return slab.agreeing() != 0; });
    const ReplicaState first = agreeing ? ReplicaState::kAgreeing : ReplicaState::kRestoring;
    for (uint32_t number = 0; number < slabs.size() && !copy_; number++) {
      if (slabs[number].live() == 0 && !disk_up) continue;
      for (const Replica& replica : slabs[number].replicas()) {
        if (replica.state == first) copy_ = {number, replica.serial};
      }
    }
  }
  if (copy_ || !disk_up || !rounds_.MayCopy(now)) return;
  const CopyRounds::Place place = rounds_.place();
  const auto slab = dispatcher_.FindOffDisk(place.slab);
  if (slab) {
    copy_ = {*slab, Copy::kDisk, *slab == place.slab ? place.position : 0};
  } else {
    rounds_.RoundEnded(now);
  }
}

// Copies data to new replicas, and what it lacks to the disk copy, a stretch at a time, so that
// restoring takes little of the window.
void Caretaker::ContinueCopy() {
  std::optional<bool> copied;
  {
    const std::lock_guard lock(mutex_);
    copied.swap(copied_);
  }
  if (copy_ && copied) {
    copy_->running = false;
    const Clock::time_point now = Clock::now();
    if (copy_->replica == Copy::kDisk) {
      // A stretch that failed is passed over.
      if (!rounds_.StretchEnded(*copied, {copy_->slab, copy_->position}, now)) copy_.reset();
    } else if (!*copied) {
      copy_.reset();
      copy_at_ = now + kTick;
    }
  }
  if (dispatcher_.IsSuspended()) return;
  if (!copy_) FindCopy();
  if (!copy_ || copy_->running) return;
  const auto done = [this](bool ok) {
    const std::lock_guard lock(mutex_);
    copied_ = ok;
    Wake();
  };
  copy_->running = true;
  const bool to_disk = copy_->replica == Copy::kDisk;
  switch (to_disk ? dispatcher_.StartDiskCopy(copy_->slab, &copy_->position, done)
                  : dispatcher_.StartCopy(copy_->slab, copy_->replica, &copy_->position, done)) {
    case Dispatcher::CopyStart::kNothingLeft:
      if (to_disk) rounds_.SlabEnded(copy_->slab);
      copy_.reset();
      Wake();
      break;
    case Dispatcher::CopyStart::kStarted:
      break;
    case Dispatcher::CopyStart::kLater:
      copy_->running = false;
      break;
    case Dispatcher::CopyStart::kBlocked:
      // Others may go on.
      copy_.reset();
  }
}

bool Caretaker::IsUp(uint32_t donor) {
  const std::lock_guard lock(dispatcher_.mutex());
  return dispatcher_.links()[donor].state == DonorLink::State::kUp;
}

int Caretaker::SendTo(uint32_t donor, const Message& message) {
  // Only this thread closes connections.
  DonorLink& link = dispatcher_.links()[donor];
  if (link.connection == nullptr) return ENOTCONN;
  // The answer may come before Send returns.
  dispatcher_.CountQuestion(link, message.type, 1);
  const int error = link.connection->Send(message);
  if (error != 0) dispatcher_.CountQuestion(link, message.type, -1);
  return error;
}

// Placement --------------------------------------------------------------------------------------

void Caretaker::SavePlacement() {
  pthread_setname_np(pthread_self(), "rocegw-far-save");
  std::unique_lock lock(mutex_);
  while (!stop_) {
    lock.unlock();
    const bool saved = dispatcher_.SavePlacement() == 0;
    lock.lock();
    changed_.wait_for(lock, saved ? kTick : std::chrono::milliseconds(kReconnectAfter),
                      [this] { return stop_; });
  }
}

// Donors of the fleet ----------------------------------------------------------------------------

std::vector<Settings::Donor> Caretaker::Donors() {
  const std::lock_guard lock(mutex_);
  return donors_;
}

// Asks for one more donor at a time with room for a slab: the answer has several.
void Caretaker::Ask() {
  pthread_setname_np(pthread_self(), "rocegw-far-ask");
  std::unique_lock lock(mutex_);
  Clock::time_point asked = Clock::now();
  while (!stop_) {
    changed_.wait_for(lock, kTick, [this] { return stop_; });
    if (stop_ || Clock::now() - asked < (needs_donors_ ? kAskSoon : kAskEvery)) continue;
    if (donors_.size() >= settings_.MostDonors()) continue;
    lock.unlock();
    auto found =
        FindFleetDonors(settings_, settings_.merge.slab_bytes, 1, kLongestAnswer, stop_fd_.get());
    lock.lock();
    asked = Clock::now();
    if (!found.ok()) continue;  // the agent is away, or no donor has room
    found_ = std::move(found.value());
    Wake();
  }
}

void Caretaker::TakeFound() {
  const std::lock_guard lock(mutex_);
  const size_t most = settings_.MostDonors() - donors_.size();
  for (Settings::Donor& donor : NewDonors(donors_, std::exchange(found_, {}), most)) {
    const auto number = static_cast<uint32_t>(donors_.size());
    uint32_t domain = 0;
    while (domain < number && (donor.failure_domain.empty() ||
                               donors_[domain].failure_domain != donor.failure_domain)) {
      domain++;
    }
    donors_.push_back(std::move(donor));
    connect_at_.emplace_back();
    tried_.push_back(false);
    dispatcher_.AddDonor(domain, donors_.back());
  }
}

// Connecting -------------------------------------------------------------------------------------

void Caretaker::Connect() {
  pthread_setname_np(pthread_self(), "rocegw-far-conn");
  std::unique_lock lock(mutex_);
  while (!stop_) {
    const bool usable = !device_lost_ || ReopenDevice(lock);
    for (uint32_t donor = 0; usable && donor < donors_.size() && !stop_; donor++) {
      if (device_lost_ || Clock::now() < connect_at_[donor]) continue;
      const Settings::Donor named = donors_[donor];
      lock.unlock();
      const bool down = [&] {
        const std::lock_guard state(dispatcher_.mutex());
        return dispatcher_.links()[donor].state == DonorLink::State::kDown;
      }();
      const Status status = down ? ConnectTo(donor, named) : OkStatus();
      lock.lock();
      connect_at_[donor] = Clock::now() + kReconnectAfter;
      if (!down) continue;
      tried_[donor] = true;
      stuck_ = false;  // until the caring thread has looked at this donor
      if (!status.ok()) {
        last_connect_ = {status.error(), named.host + ": " + status.text()};
        if (status.error() == ECONNREFUSED) dispatcher_.Refused(donor);
      }
      Wake();
      changed_.notify_all();
    }
    changed_.wait_for(lock, kTick, [this] { return stop_; });
  }
}

// Closes the device that has ended, once no connection uses it, and opens it again. Returns whether
// it is there.
bool Caretaker::ReopenDevice(std::unique_lock<std::mutex>& lock) {
  const std::vector<Settings::Donor> donors = donors_;
  lock.unlock();
  bool opened = false;
  // Only this thread makes connections: none comes meanwhile.
  dispatcher_.SuspendLinks();
  if (dispatcher_.AreLinksDown()) {
    if (!device_closed_) device_.close();
    opened = device_.open(donors).ok();
    device_closed_ = !opened;
    if (opened) dispatcher_.DeviceChanged();
  }
  lock.lock();
  if (!opened) return false;
  device_lost_ = false;
  // All donors are tried at once.
  connect_at_.assign(connect_at_.size(), {});
  return true;
}

Status Caretaker::ConnectTo(uint32_t donor, const Settings::Donor& named) {
  const auto deadline = Clock::now() + std::chrono::milliseconds(settings_.connect_timeout_ms);
  auto connection = std::make_unique<Connection>(stop_fd_.get());
  Status status = connection->Resolve(named.host, named.port, deadline);
  if (!status.ok()) return status;
  const auto device = memory_.device();
  if (connection->context() != device->context()) {
    return {EXDEV, "is reached through another device than the first donor"};
  }
  status = connection->MakeQueuePair(device->pd(), pollers_[donor % pollers_.size()]->cq(),
                                     {Dispatcher::kSendDepth, settings_.merge.most_segments});
  if (!status.ok()) return status;
  const auto welcome = connection->Connect(dispatcher_.HelloFor(donor), deadline);
  if (!welcome.ok()) {
    connection->Abort();
    for (int wait = 0; wait < 100 && !connection->idle(); wait++) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    const auto quiet = std::unique_lock(pollers_[donor % pollers_.size()]->quiet());
    connection.reset();
    return welcome.status();
  }
  dispatcher_.LinkUp(donor, std::move(connection), welcome.value());
  return OkStatus();
}

}  // namespace rocegw::far
