// SPDX-License-Identifier: Apache-2.0
#include "gateway/client/queues/send_builder.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>

#include "gateway/client/device/later_verbs.h"
#include "gateway/client/device/refusals.h"

namespace rocegw::client {

struct SendBuilder {
  alignas(SendPost) uint8_t post[sizeof(SendPost)];  // alive between start and end
  ibv_send_wr wr;                                    // current request
  bool open;                                         // there is a current request
  uint64_t flush_length;                             // length of a FLUSH
  uint32_t feth;                                     // the same; 0: not a FLUSH
  int error;                                         // first error
  ibv_sge* sges;                                     // capacity max_sge
  uint8_t* inline_data;                              // capacity max_inline
};

namespace {

constexpr uint64_t kDatagramOps = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;
constexpr uint64_t kUnreliableOps = kDatagramOps | IBV_QP_EX_WITH_RDMA_WRITE |
                                    IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_LOCAL_INV |
                                    IBV_QP_EX_WITH_BIND_MW;
constexpr uint64_t kReliableOps = kUnreliableOps | IBV_QP_EX_WITH_SEND_WITH_INV |
                                  IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
                                  IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
constexpr uint64_t kPlacementOps = kWithFlush | kWithAtomicWrite;

Qp* QpOf(ibv_qp_ex* ex) { return FromIbv(&ex->qp_base); }
SendBuilder& BuilderOf(ibv_qp_ex* ex) { return *QpOf(ex)->builder; }
SendPost& PostOf(SendBuilder& builder) {
  return *std::launder(reinterpret_cast<SendPost*>(builder.post));
}

void Fail(SendBuilder& builder, int error) {
  if (builder.error == 0) builder.error = error;
}

// Posts the current request: at the start of the next one, or the end of the list.
void Finish(ibv_qp_ex* ex) {
  SendBuilder& builder = BuilderOf(ex);
  const uint32_t order = QpOf(ex)->rings.send.order_flags;
  if (builder.open && builder.error == 0) {
    Fail(builder, builder.feth != 0 ? PostOf(builder).AddFlush(builder.wr, order,
                                                               builder.flush_length, builder.feth)
                                    : PostOf(builder).Add(builder.wr, order));
  }
  builder.open = false;
}

ibv_send_wr& Begin(ibv_qp_ex* ex, ibv_wr_opcode opcode) {
  Finish(ex);
  SendBuilder& builder = BuilderOf(ex);
  builder.wr = {};
  builder.wr.wr_id = ex->wr_id;
  builder.wr.send_flags = ex->wr_flags;
  builder.wr.opcode = opcode;
  builder.wr.sg_list = builder.sges;
  builder.open = true;
  builder.feth = 0;
  return builder.wr;
}

void Start(ibv_qp_ex* ex) {
  SendRing& ring = QpOf(ex)->rings.send;
  SendBuilder& builder = BuilderOf(ex);
  auto* post = new (builder.post) SendPost(ring);
  builder.open = false;
  builder.error = post->error();
}

int Complete(ibv_qp_ex* ex) {
  Finish(ex);
  SendBuilder& builder = BuilderOf(ex);
  const int error = builder.error;
  if (error != 0) PostOf(builder).Forget();
  PostOf(builder).~SendPost();
  return error;
}

void Abort(ibv_qp_ex* ex) {
  SendBuilder& builder = BuilderOf(ex);
  PostOf(builder).Forget();
  PostOf(builder).~SendPost();
}

void Send(ibv_qp_ex* ex) { Begin(ex, IBV_WR_SEND); }

void SendImmediate(ibv_qp_ex* ex, __be32 immediate) {
  Begin(ex, IBV_WR_SEND_WITH_IMM).imm_data = immediate;
}

void SendInvalidate(ibv_qp_ex* ex, uint32_t key) {
  Begin(ex, IBV_WR_SEND_WITH_INV).invalidate_rkey = key;
}

void LocalInvalidate(ibv_qp_ex* ex, uint32_t key) {
  Begin(ex, IBV_WR_LOCAL_INV).invalidate_rkey = key;
}

void Bind(ibv_qp_ex* ex, ibv_mw* mw, uint32_t key, const ibv_mw_bind_info* info) {
  Begin(ex, IBV_WR_BIND_MW).bind_mw = {mw, key, *info};
}

ibv_send_wr& BeginRemote(ibv_qp_ex* ex, ibv_wr_opcode opcode, uint32_t rkey, uint64_t address) {
  ibv_send_wr& wr = Begin(ex, opcode);
  wr.wr.rdma.remote_addr = address;
  wr.wr.rdma.rkey = rkey;
  return wr;
}

void Write(ibv_qp_ex* ex, uint32_t rkey, uint64_t address) {
  BeginRemote(ex, IBV_WR_RDMA_WRITE, rkey, address);
}

void WriteImmediate(ibv_qp_ex* ex, uint32_t rkey, uint64_t address, __be32 immediate) {
  BeginRemote(ex, IBV_WR_RDMA_WRITE_WITH_IMM, rkey, address).imm_data = immediate;
}

void Read(ibv_qp_ex* ex, uint32_t rkey, uint64_t address) {
  BeginRemote(ex, IBV_WR_RDMA_READ, rkey, address);
}

void CompareSwap(ibv_qp_ex* ex, uint32_t rkey, uint64_t address, uint64_t compare, uint64_t swap) {
  Begin(ex, IBV_WR_ATOMIC_CMP_AND_SWP).wr.atomic = {address, compare, swap, rkey};
}

void FetchAdd(ibv_qp_ex* ex, uint32_t rkey, uint64_t address, uint64_t add) {
  Begin(ex, IBV_WR_ATOMIC_FETCH_AND_ADD).wr.atomic = {address, add, 0, rkey};
}

void SetAddress(ibv_qp_ex* ex, ibv_ah* ah, uint32_t qpn, uint32_t qkey) {
  BuilderOf(ex).wr.wr.ud = {ah, qpn, qkey};
}

void SetReceiver(ibv_qp_ex* ex, uint32_t number) {
  BuilderOf(ex).wr.qp_type.xrc.remote_srqn = number;
}

void SetSges(ibv_qp_ex* ex, size_t count, const ibv_sge* sges) {
  SendBuilder& builder = BuilderOf(ex);
  if (count > QpOf(ex)->rings.send.max_sge) return Fail(builder, EINVAL);
  if (count != 0) memcpy(builder.sges, sges, count * sizeof(ibv_sge));
  builder.wr.num_sge = static_cast<int>(count);
}

void SetSge(ibv_qp_ex* ex, uint32_t lkey, uint64_t address, uint32_t length) {
  const ibv_sge sge = {address, length, lkey};
  SetSges(ex, 1, &sge);
}

// The program may reuse its buffers at once.
void SetInlineList(ibv_qp_ex* ex, size_t count, const ibv_data_buf* buffers) {
  SendBuilder& builder = BuilderOf(ex);
  const size_t room = QpOf(ex)->rings.send.max_inline;
  size_t total = 0;
  for (size_t i = 0; i < count; ++i) {
    if (buffers[i].length > room - total) return Fail(builder, ENOMEM);
    if (buffers[i].length == 0) continue;
    memcpy(builder.inline_data + total, buffers[i].addr, buffers[i].length);
    total += buffers[i].length;
  }
  builder.sges[0] = {reinterpret_cast<uint64_t>(builder.inline_data), static_cast<uint32_t>(total),
                     0};
  builder.wr.num_sge = 1;
  builder.wr.send_flags |= IBV_SEND_INLINE;
}

void SetInline(ibv_qp_ex* ex, void* address, size_t length) {
  const ibv_data_buf buffer = {address, length};
  SetInlineList(ex, 1, &buffer);
}

void AtomicWrite(ibv_qp_ex* ex, uint32_t rkey, uint64_t address, const void* value) {
  BeginRemote(ex, static_cast<ibv_wr_opcode>(kWrAtomicWrite), rkey, address);
  SetInline(ex, const_cast<void*>(value), sizeof(uint64_t));
}

void Flush(ibv_qp_ex* ex, uint32_t rkey, uint64_t address, size_t length, uint8_t type,
           uint8_t level) {
  BeginRemote(ex, static_cast<ibv_wr_opcode>(kWrFlush), rkey, address);
  SendBuilder& builder = BuilderOf(ex);
  if (type == 0 || (type & ~kFlushTypes) != 0 || level > kFlushLevels) return Fail(builder, EINVAL);
  builder.flush_length = length;
  builder.feth = type | uint32_t{level} << 4;
}

}  // namespace

int CheckSendOps(ibv_context* context, ibv_qp_type type, uint64_t ops) {
  // An id without a device has none.
  const bool placement = type == IBV_QPT_RC && context != nullptr && FromIbv(context)->placement;
  const uint64_t known = placement                  ? kReliableOps | kPlacementOps
                         : type == IBV_QPT_UD       ? kDatagramOps
                         : type == IBV_QPT_UC       ? kUnreliableOps
                         : type == IBV_QPT_XRC_RECV ? 0
                                                    : kReliableOps;
  return (ops & ~known) != 0 ? refusal::ibv_create_qp_ex : 0;
}

int AddSendBuilder(Qp* qp, uint64_t ops) {
  const SendRing& ring = qp->rings.send;
  auto* builder = MakeObject<SendBuilder>();
  if (builder == nullptr) return ENOMEM;
  builder->sges = static_cast<ibv_sge*>(calloc(ring.max_sge + 1, sizeof(ibv_sge)));
  builder->inline_data = static_cast<uint8_t*>(calloc(ring.max_inline + 1, 1));
  qp->builder = builder;
  if (builder->sges == nullptr || builder->inline_data == nullptr) {
    RemoveSendBuilder(qp);
    return ENOMEM;
  }
  qp->ex.wr_start = &Start;
  qp->ex.wr_complete = &Complete;
  qp->ex.wr_abort = &Abort;
  qp->ex.wr_set_ud_addr = &SetAddress;
  qp->ex.wr_set_xrc_srqn = &SetReceiver;
  qp->ex.wr_set_sge = &SetSge;
  qp->ex.wr_set_sge_list = &SetSges;
  qp->ex.wr_set_inline_data = &SetInline;
  qp->ex.wr_set_inline_data_list = &SetInlineList;
  if ((ops & IBV_QP_EX_WITH_SEND) != 0) qp->ex.wr_send = &Send;
  if ((ops & IBV_QP_EX_WITH_SEND_WITH_IMM) != 0) qp->ex.wr_send_imm = &SendImmediate;
  if ((ops & IBV_QP_EX_WITH_SEND_WITH_INV) != 0) qp->ex.wr_send_inv = &SendInvalidate;
  if ((ops & IBV_QP_EX_WITH_LOCAL_INV) != 0) qp->ex.wr_local_inv = &LocalInvalidate;
  if ((ops & IBV_QP_EX_WITH_BIND_MW) != 0) qp->ex.wr_bind_mw = &Bind;
  if ((ops & IBV_QP_EX_WITH_RDMA_WRITE) != 0) qp->ex.wr_rdma_write = &Write;
  if ((ops & IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM) != 0) qp->ex.wr_rdma_write_imm = &WriteImmediate;
  if ((ops & IBV_QP_EX_WITH_RDMA_READ) != 0) qp->ex.wr_rdma_read = &Read;
  if ((ops & IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP) != 0) qp->ex.wr_atomic_cmp_swp = &CompareSwap;
  if ((ops & IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD) != 0) qp->ex.wr_atomic_fetch_add = &FetchAdd;
  if ((ops & kWithAtomicWrite) != 0) qp->ex.wr_atomic_write = &AtomicWrite;
  qp->later.extended = 1;
  if ((ops & kWithFlush) != 0) qp->later.wr_flush = &Flush;
  qp->extended = 1;
  return 0;
}

void RemoveSendBuilder(Qp* qp) {
  if (qp->builder == nullptr) return;
  free(qp->builder->sges);
  free(qp->builder->inline_data);
  free(qp->builder);
  qp->builder = nullptr;
}

}  // namespace rocegw::client
