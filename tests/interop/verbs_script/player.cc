// SPDX-License-Identifier: Apache-2.0
#include "tests/interop/verbs_script/player.h"

#include <arpa/inet.h>
#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <sstream>

#include "tests/interop/rdma_check/arena.h"
#include "tests/interop/rdma_check/failure.h"
#include "tests/interop/verbs_script/words.h"

namespace rocegw::interop {
namespace {

constexpr uint32_t kQkey = 0x11111111;
constexpr uint32_t kPsn = 100;
constexpr uint32_t kGrh = 40;
constexpr uint32_t kBadKey = 0xDEAD5A00;
constexpr uint64_t kMarker = 0xFFFF;  // ID of the request behind all others
constexpr uint32_t kGap = 16;         // changed bytes so near to each other are told as one extent

std::string OwnLines(bool left, const std::string& text) {
  return std::string(left ? "L " : "R ") + text + "\n";
}

}  // namespace

Player::Player(Control& control, ibv_context* context, bool left)
    : control_(control), context_(context), left_(left), first_(kMemory) {
  void* const memory =
      mmap(nullptr, kMemory, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CheckErrno(memory != MAP_FAILED, "mmap");
  memory_ = static_cast<uint8_t*>(memory);
  FillPattern(left ? 1 : 2, 0, first_.data(), kMemory);
  std::memcpy(memory_, first_.data(), kMemory);
}

Player::~Player() {
  qp_.reset();
  srq_.reset();
  handle_.reset();
  sends_.reset();
  receives_.reset();
  regions_.clear();
  pd_.reset();
  munmap(memory_, kMemory);
}

std::string Player::Connect(const ScriptLine& line) {
  pd_.reset(ibv_alloc_pd(context_));
  CheckErrno(pd_ != nullptr, "ibv_alloc_pd");
  RegisterRegion(ScriptLine::Parse("L mr all 0+" + std::to_string(kMemory) + " lwra"));
  sends_ = std::make_unique<Completions>(context_, 64, false);
  receives_ = std::make_unique<Completions>(context_, 64, false);
  ibv_qp_init_attr init{};
  init.send_cq = sends_->cq();
  init.recv_cq = receives_->cq();
  const std::string& type = line.word(0);
  init.qp_type = type == "rc" ? IBV_QPT_RC : type == "uc" ? IBV_QPT_UC : IBV_QPT_UD;
  signals_all_ = line.has("signal");
  init.sq_sig_all = signals_all_ ? 1 : 0;
  init.cap.max_send_wr = 16;
  init.cap.max_recv_wr = line.has("srq") ? 0 : 16;
  init.cap.max_send_sge = init.cap.max_recv_sge = 4;
  init.cap.max_inline_data = 64;
  if (line.has("srq")) {
    ibv_srq_init_attr shared{};
    shared.attr.max_wr = 16;
    shared.attr.max_sge = 4;
    srq_.reset(ibv_create_srq(pd_.get(), &shared));
    CheckErrno(srq_ != nullptr, "ibv_create_srq");
    init.srq = srq_.get();
  }
  qp_.reset(ibv_create_qp(pd_.get(), &init));
  CheckErrno(qp_ != nullptr, "ibv_create_qp");
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  attr.qkey = kQkey;
  attr.qp_access_flags = static_cast<unsigned>(Rights(line.text("access", "wra")));
  const bool datagrams = init.qp_type == IBV_QPT_UD;
  const std::string until = line.text("until", "rts");
  if (until != "reset") {
    CheckCode(ibv_modify_qp(qp_.get(), &attr,
                            IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                                (datagrams ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS)),
              "ibv_modify_qp to INIT");
  }
  std::istringstream theirs(control_.Exchange(std::to_string(qp_->qp_num) + " " +
                                              std::to_string(reinterpret_cast<uint64_t>(memory_))));
  theirs >> peer_.qpn >> peer_.base;
  ShareKeys();
  if (until == "rtr" || until == "rts")
    CheckCode(ToReadyToReceive(line, GidOf(control_.PeerAddress())), "ibv_modify_qp to RTR");
  if (until == "rts") CheckCode(ToReadyToSend(line), "ibv_modify_qp to RTS");
  return "";
}

int Player::ToReadyToReceive(const ScriptLine& line, const ibv_gid& gid) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = IBV_MTU_1024;
  attr.dest_qp_num = peer_.qpn;
  attr.rq_psn = kPsn;
  attr.max_dest_rd_atomic = static_cast<uint8_t>(line.value("reads", 4));
  attr.min_rnr_timer = 6;  // 0.08 ms
  attr.ah_attr.is_global = 1;
  attr.ah_attr.port_num = 1;
  attr.ah_attr.grh.dgid = gid;
  attr.ah_attr.grh.sgid_index = GidIndex(context_, GidOf(control_.LocalAddress()));
  attr.ah_attr.grh.hop_limit = 64;
  if (qp_->qp_type == IBV_QPT_UD) {
    handle_.reset(ibv_create_ah(pd_.get(), &attr.ah_attr));
    CheckErrno(handle_ != nullptr, "ibv_create_ah");
    return ibv_modify_qp(qp_.get(), &attr, IBV_QP_STATE);
  }
  const int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
  const bool reliable = qp_->qp_type == IBV_QPT_RC;
  return ibv_modify_qp(qp_.get(), &attr,
                       reliable ? mask | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : mask);
}

int Player::ToReadyToSend(const ScriptLine& line) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTS;
  attr.sq_psn = kPsn;
  attr.timeout = 14;
  attr.retry_cnt = static_cast<uint8_t>(line.value("retry", 7));
  attr.rnr_retry = static_cast<uint8_t>(line.value("rnr", 7));
  attr.max_rd_atomic = static_cast<uint8_t>(line.value("reads", 4));
  const int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
  const bool reliable = qp_->qp_type == IBV_QPT_RC;
  return ibv_modify_qp(qp_.get(), &attr,
                       reliable ? mask | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                      IBV_QP_MAX_QP_RD_ATOMIC
                                : mask);
}

void Player::ShareKeys() {
  std::ostringstream mine;
  for (const auto& [name, key] : keys_) mine << name << ' ' << key << ' ';
  std::istringstream theirs(control_.Exchange(mine.str()));
  std::string name;
  uint32_t key = 0;
  while (theirs >> name >> key) peer_.keys[name] = key;
}

std::string Player::RegisterRegion(const ScriptLine& line) {
  const Extent where = line.pieces(1).at(0);
  Owned<ibv_mr> region(
      ibv_reg_mr(pd_.get(), memory_ + where.offset, where.length, Rights(line.word(2))));
  if (region == nullptr) return OwnLines(left_, "mr " + line.word(0) + " " + ErrnoName(errno));
  keys_[line.word(0)] = region->rkey;
  regions_[line.word(0)] = std::move(region);
  return "";
}

std::vector<ibv_sge> Player::ListOf(const ScriptLine& line) const {
  const std::string name = line.text("key", "all");
  const auto region = keys_.find(name);
  const uint32_t key = region == keys_.end() ? kBadKey : region->second;
  std::vector<ibv_sge> list;
  for (const Extent& piece : line.pieces(1)) {
    list.push_back({.addr = reinterpret_cast<uint64_t>(memory_) + piece.offset,
                    .length = piece.length,
                    .lkey = key});
  }
  return list;
}

std::string Player::PostReceive(const ScriptLine& line) {
  std::vector<ibv_sge> list = ListOf(line);
  ibv_recv_wr wr{};
  wr.wr_id = line.number(0);
  wr.sg_list = list.data();
  wr.num_sge = static_cast<int>(list.size());
  ibv_recv_wr* bad = nullptr;
  const int error = srq_ != nullptr ? ibv_post_srq_recv(srq_.get(), &wr, &bad)
                                    : ibv_post_recv(qp_.get(), &wr, &bad);
  if (error != 0) return OwnLines(left_, "post " + line.word(0) + " " + ErrnoName(error));
  posted_[wr.wr_id] = line.pieces(1);
  ++open_receives_;
  return "";
}

std::string Player::PostRequest(const ScriptLine& line) {
  std::vector<ibv_sge> list = ListOf(line);
  ibv_send_wr wr{};
  wr.wr_id = line.number(0);
  wr.sg_list = list.data();
  wr.num_sge = static_cast<int>(list.size());
  if (!line.has("quiet")) wr.send_flags |= IBV_SEND_SIGNALED;
  if (line.has("inline")) wr.send_flags |= IBV_SEND_INLINE;
  if (line.has("fence")) wr.send_flags |= IBV_SEND_FENCE;
  if (line.has("solicited")) wr.send_flags |= IBV_SEND_SOLICITED;
  wr.imm_data = htonl(static_cast<uint32_t>(line.value("imm")));
  const auto known = peer_.keys.find(line.text("rkey", "all"));
  const uint32_t rkey = known == peer_.keys.end() ? kBadKey : known->second;
  const uint64_t remote = peer_.base + line.value("to");
  if (line.verb == "cas" || line.verb == "fadd") {
    wr.opcode = line.verb == "cas" ? IBV_WR_ATOMIC_CMP_AND_SWP : IBV_WR_ATOMIC_FETCH_AND_ADD;
    wr.wr.atomic = {.remote_addr = remote,
                    .compare_add = line.has("cmp") ? line.value("cmp") : line.value("add"),
                    .swap = line.value("swap"),
                    .rkey = rkey};
  } else if (line.verb == "send") {
    wr.opcode = line.has("imm") ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND;
  } else if (line.verb == "read") {
    wr.opcode = IBV_WR_RDMA_READ;
  } else {
    wr.opcode = line.has("imm") ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE;
  }
  if (line.verb == "write" || line.verb == "read") wr.wr.rdma = {remote, rkey};
  if (qp_->qp_type == IBV_QPT_UD) {
    wr.wr.ud = {.ah = handle_.get(),
                .remote_qpn = static_cast<uint32_t>(line.value("qpn", peer_.qpn)),
                .remote_qkey = static_cast<uint32_t>(line.value("qkey", kQkey))};
  }
  ibv_send_wr* bad = nullptr;
  const int error = ibv_post_send(qp_.get(), &wr, &bad);
  if (line.has("inline")) {
    // The bytes are taken: what happens to them here is nobody's business any more.
    for (const Extent& piece : line.pieces(1)) std::memset(memory_ + piece.offset, 0, piece.length);
  }
  if (error != 0) return OwnLines(left_, "post " + line.word(0) + " " + ErrnoName(error));
  if (!line.has("quiet") || signals_all_) ++open_sends_;
  return "";
}

std::string Player::Describe(const ibv_wc& wc, bool send) {
  std::ostringstream text;
  text << (send ? "sent " : "received ") << wc.wr_id << ' ' << StatusName(wc.status);
  if (!send) --open_receives_;
  if (send && open_sends_ != 0) --open_sends_;
  const bool datagram = !send && qp_->qp_type == IBV_QPT_UD;
  if (datagram && wc.status != IBV_WC_WR_FLUSH_ERR) ForgetHeader(wc.wr_id);
  if (wc.status != IBV_WC_SUCCESS) return text.str();
  text << ' ' << OpcodeName(wc.opcode);
  const bool brings = wc.opcode == IBV_WC_RDMA_READ || wc.opcode == IBV_WC_COMP_SWAP ||
                      wc.opcode == IBV_WC_FETCH_ADD;
  if (!send || brings) text << " length " << wc.byte_len;
  if (send) return text.str();
  if ((wc.wc_flags & IBV_WC_WITH_IMM) != 0) text << " immediate " << std::hex << ntohl(wc.imm_data);
  if (!datagram) return text.str();
  text << (wc.src_qp == peer_.qpn ? " from the peer" : " from elsewhere");
  if ((wc.wc_flags & IBV_WC_GRH) != 0) text << " with header";
  return text.str();
}

// It has numbers that count the stack's packets: they are no part of what is compared.
void Player::ForgetHeader(uint64_t receive) {
  uint32_t left = kGrh;
  for (const Extent& piece : posted_[receive]) {
    const uint32_t part = std::min(left, piece.length);
    std::memset(memory_ + piece.offset, 0, part);
    left -= part;
  }
}

std::string Player::Wait(bool sends, uint64_t count) {
  std::string text;
  // What was refused when it was posted is not waited for.
  for (; count != 0 && (sends ? open_sends_ : open_receives_) != 0; --count) {
    const ibv_wc wc = (sends ? sends_ : receives_)->WaitOne("a line of the script waits");
    text += OwnLines(left_, Describe(wc, sends));
  }
  return text;
}

std::string Player::AwaitChange(const Extent& piece) const {
  const uint32_t last = piece.offset + piece.length - 1;
  const auto deadline = std::chrono::steady_clock::now() + kCompletionTimeout;
  while (__atomic_load_n(memory_ + last, __ATOMIC_ACQUIRE) == first_[last]) {
    Check(std::chrono::steady_clock::now() < deadline, "nothing has arrived at ", piece.offset);
    sched_yield();
  }
  return "";
}

std::string Player::Move(const std::string& state) {
  ibv_qp_attr attr{};
  attr.qp_state = StateNamed(state);
  const int error = ibv_modify_qp(qp_.get(), &attr, IBV_QP_STATE);
  // What a reset forgets is not waited for.
  if (error == 0 && attr.qp_state == IBV_QPS_RESET) open_sends_ = open_receives_ = 0;
  return OwnLines(left_, "to " + state + " " + (error == 0 ? "ok" : ErrnoName(error)));
}

std::string Player::State() {
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  CheckCode(ibv_query_qp(qp_.get(), &attr, IBV_QP_STATE, &init), "ibv_query_qp");
  return OwnLines(left_, "is in " + StateName(attr.qp_state));
}

std::string Player::Play(const ScriptLine& line) {
  if (line.verb == "recv") return PostReceive(line);
  if (line.verb == "sends" || line.verb == "recvs")
    return Wait(line.verb == "sends", line.number(0));
  if (line.verb == "arrived") return AwaitChange(line.pieces(0).at(0));
  if (line.verb == "mr") return RegisterRegion(line);
  if (line.verb == "to") return Move(line.word(0));
  if (line.verb == "state") return State();
  if (line.verb == "dereg") {
    regions_.erase(line.word(0));
    return "";
  }
  if (line.verb == "word") {
    const uint64_t value = line.number(1);
    std::memcpy(memory_ + line.number(0), &value, sizeof value);
    return "";
  }
  for (const char* const request : {"send", "write", "read", "cas", "fadd"}) {
    if (line.verb == request) return PostRequest(line);
  }
  Fail("no verb '", line.verb, "'");
}

std::string Player::Finish() {
  std::string text;
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  CheckCode(ibv_query_qp(qp_.get(), &attr, IBV_QP_STATE, &init), "ibv_query_qp");
  const bool active = attr.qp_state != IBV_QPS_RESET;
  if (active) {
    attr.qp_state = IBV_QPS_ERR;
    CheckCode(ibv_modify_qp(qp_.get(), &attr, IBV_QP_STATE), "ibv_modify_qp to ERR");
    ibv_send_wr wr{};
    wr.wr_id = kMarker;
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.ud.ah = handle_.get();
    ibv_send_wr* bad = nullptr;
    CheckCode(ibv_post_send(qp_.get(), &wr, &bad), "marker behind all requests");
    for (ibv_wc wc{}; (wc = sends_->WaitOne("the marker")).wr_id != kMarker;)
      text += OwnLines(left_, "at the end: " + Describe(wc, true));
  }
  while (active && srq_ == nullptr && open_receives_ != 0)
    text += OwnLines(left_, "at the end: " + Describe(receives_->WaitOne("a flush"), false));
  for (const ibv_wc& wc : sends_->Poll(64))
    text += OwnLines(left_, "too much: " + Describe(wc, true));
  for (const ibv_wc& wc : receives_->Poll(64))
    text += OwnLines(left_, "too much: " + Describe(wc, false));
  return text + ChangedMemory();
}

std::string Player::ChangedMemory() const {
  std::string text;
  for (uint32_t at = 0; at < kMemory; ++at) {
    if (memory_[at] == first_[at]) continue;
    uint32_t end = at + 1;
    for (uint32_t i = end; i < std::min(kMemory, end + kGap); ++i) {
      if (memory_[i] != first_[i]) end = i + 1;
    }
    uint64_t sum = 0xCBF29CE484222325;  // FNV-1a
    for (uint32_t i = at; i < end; ++i) sum = (sum ^ memory_[i]) * 0x100000001B3;
    std::ostringstream line;
    line << "memory " << at << '+' << end - at << " is " << std::hex << sum;
    text += OwnLines(left_, line.str());
    at = end;
  }
  return text;
}

}  // namespace rocegw::interop
