// SPDX-License-Identifier: Apache-2.0
#include "gateway/port/xdp/xdp_filter.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <cstddef>

#include "gateway/port/frame.h"

namespace rocegw::port {
namespace {

// Registers by use. R0 to R5 do not survive a call of a helper function.
constexpr uint8_t kResult = BPF_REG_0;
constexpr uint8_t kMap = BPF_REG_1;
constexpr uint8_t kFrame = BPF_REG_2;  // first byte of the frame
constexpr uint8_t kEnd = BPF_REG_3;    // behind its last byte
constexpr uint8_t kLimit = BPF_REG_4;
constexpr uint8_t kField = BPF_REG_5;
constexpr uint8_t kContext = BPF_REG_6;
constexpr uint8_t kStack = BPF_REG_10;
constexpr int16_t kKey = -16;  // the destination as a GID, on the stack

constexpr int16_t kIp = kEthernetHeaderLength;
constexpr int16_t kUdp4 = kIp + kIpv4HeaderLength;
constexpr int16_t kUdp6 = kIp + kIpv6HeaderLength;
constexpr uint16_t kFragmentBits = 0x3FFF;  // more fragments, and the offset

// Sequence of instructions with forward jumps to two labels.
class Assembler {
 public:
  enum Label : uint8_t { kIpv6, kLookUp, kTake, kPass, kLabels };

  void Add(uint8_t code, uint8_t target, uint8_t source, int16_t offset, int32_t value) {
    bpf_insn instruction{};
    instruction.code = code;
    instruction.dst_reg = target & 0xF;
    instruction.src_reg = source & 0xF;
    instruction.off = offset;
    instruction.imm = value;
    code_.push_back(instruction);
  }
  void Load(uint8_t size, uint8_t target, uint8_t from, int16_t offset) {
    Add(BPF_LDX | BPF_MEM | size, target, from, offset, 0);
  }
  void Store(uint8_t size, int16_t offset, uint8_t source) {
    Add(BPF_STX | BPF_MEM | size, kStack, source, offset, 0);
  }
  void Move(uint8_t target, uint8_t source) {
    Add(BPF_ALU64 | BPF_MOV | BPF_X, target, source, 0, 0);
  }
  void Set(uint8_t target, int32_t value) { Add(BPF_ALU64 | BPF_MOV | BPF_K, target, 0, 0, value); }
  void Plus(uint8_t target, int32_t value) {
    Add(BPF_ALU64 | BPF_ADD | BPF_K, target, 0, 0, value);
  }
  void And(uint8_t target, int32_t value) { Add(BPF_ALU64 | BPF_AND | BPF_K, target, 0, 0, value); }
  void LoadMap(uint8_t target, int map) {
    Add(BPF_LD | BPF_DW | BPF_IMM, target, BPF_PSEUDO_MAP_FD, 0, map);
    Add(0, 0, 0, 0, 0);
  }
  void Call(int32_t function) { Add(BPF_JMP | BPF_CALL, 0, 0, 0, function); }
  void Exit() { Add(BPF_JMP | BPF_EXIT, 0, 0, 0, 0); }
  void JumpIf(uint8_t condition, uint8_t field, int32_t value, Label label) {
    jumps_.push_back({code_.size(), label});
    Add(BPF_JMP | condition | BPF_K, field, 0, 0, value);
  }
  void JumpIfRegister(uint8_t condition, uint8_t field, uint8_t other, Label label) {
    jumps_.push_back({code_.size(), label});
    Add(BPF_JMP | condition | BPF_X, field, other, 0, 0);
  }
  void Jump(Label label) { JumpIf(BPF_JA, 0, 0, label); }
  void Mark(Label label) { marks_[label] = code_.size(); }

  std::vector<bpf_insn> Finish() {
    for (const auto& jump : jumps_)
      code_[jump.at].off = static_cast<int16_t>(marks_[jump.label] - jump.at - 1);
    return std::move(code_);
  }

 private:
  struct Jump_ {
    size_t at;
    Label label;
  };
  std::vector<bpf_insn> code_;
  std::vector<Jump_> jumps_;
  size_t marks_[kLabels] = {};
};

// Leaves the frame to the kernel unless it has that many bytes.
void RequireLength(Assembler& code, int32_t length) {
  code.Move(kLimit, kFrame);
  code.Plus(kLimit, length);
  code.JumpIfRegister(BPF_JGT, kLimit, kEnd, Assembler::kPass);
}

void Require(Assembler& code, uint8_t size, int16_t offset, int32_t value) {
  code.Load(size, kField, kFrame, offset);
  code.JumpIf(BPF_JNE, kField, value, Assembler::kPass);
}

}  // namespace

// Offsets: RFC 791, RFC 8200, RFC 768. Multi-byte fields are compared in network byte order.
std::vector<bpf_insn> XdpFilter(const XdpFilterMaps& maps, uint16_t udp_port) {
  Assembler code;
  code.Move(kContext, BPF_REG_1);
  code.Load(BPF_W, kFrame, kContext, offsetof(xdp_md, data));
  code.Load(BPF_W, kEnd, kContext, offsetof(xdp_md, data_end));
  RequireLength(code, kUdp4 + static_cast<int32_t>(kUdpHeaderLength));
  code.Load(BPF_H, kField, kFrame, kIp - 2);
  code.JumpIf(BPF_JEQ, kField, htons(kEtherTypeIpv6), Assembler::kIpv6);
  code.JumpIf(BPF_JNE, kField, htons(kEtherTypeIpv4), Assembler::kPass);

  Require(code, BPF_B, kIp, 0x45);  // version 4, no options
  Require(code, BPF_B, kIp + 9, IPPROTO_UDP);
  code.Load(BPF_H, kField, kFrame, kIp + 6);
  code.And(kField, htons(kFragmentBits));
  code.JumpIf(BPF_JNE, kField, 0, Assembler::kPass);
  Require(code, BPF_H, kUdp4 + 2, htons(udp_port));
  code.Load(BPF_B, kField, kFrame, kIp + 16);
  code.And(kField, 0xF0);
  code.JumpIf(BPF_JEQ, kField, 0xE0, Assembler::kTake);  // 224.0.0.0/4
  code.Set(kField, 0);
  code.Store(BPF_DW, kKey, kField);
  code.Set(kField, static_cast<int32_t>(htonl(0xFFFF)));
  code.Store(BPF_W, kKey + 8, kField);
  code.Load(BPF_W, kField, kFrame, kIp + 16);
  code.Store(BPF_W, kKey + 12, kField);
  code.Jump(Assembler::kLookUp);

  code.Mark(Assembler::kIpv6);
  RequireLength(code, kUdp6 + static_cast<int32_t>(kUdpHeaderLength));
  Require(code, BPF_B, kIp + 6, IPPROTO_UDP);
  Require(code, BPF_H, kUdp6 + 2, htons(udp_port));
  code.Load(BPF_B, kField, kFrame, kIp + 24);
  code.JumpIf(BPF_JEQ, kField, 0xFF, Assembler::kTake);  // ff00::/8
  code.Load(BPF_DW, kField, kFrame, kIp + 24);
  code.Store(BPF_DW, kKey, kField);
  code.Load(BPF_DW, kField, kFrame, kIp + 32);
  code.Store(BPF_DW, kKey + 8, kField);

  code.Mark(Assembler::kLookUp);
  code.LoadMap(kMap, maps.addresses);
  code.Move(BPF_REG_2, kStack);
  code.Plus(BPF_REG_2, kKey);
  code.Call(BPF_FUNC_map_lookup_elem);
  code.JumpIf(BPF_JEQ, kResult, 0, Assembler::kPass);

  code.Mark(Assembler::kTake);
  code.LoadMap(kMap, maps.sockets);
  code.Load(BPF_W, BPF_REG_2, kContext, offsetof(xdp_md, rx_queue_index));
  code.Set(BPF_REG_3, XDP_PASS);  // verdict for a queue without a socket
  code.Call(BPF_FUNC_redirect_map);
  code.Exit();

  code.Mark(Assembler::kPass);
  code.Set(kResult, XDP_PASS);
  code.Exit();
  return code.Finish();
}

}  // namespace rocegw::port
