// SPDX-License-Identifier: Apache-2.0
#include "gateway/port/xdp/bpf_call.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace rocegw::port {
namespace {

constexpr char kLicense[] = "Apache-2.0";
constexpr size_t kLogBytes = 64 << 10;

bpf_attr BpfAttributes() {
  bpf_attr attributes;
  std::memset(&attributes, 0, sizeof attributes);
  return attributes;
}

uint64_t AddressOf(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

long CallBpf(bpf_cmd command, bpf_attr& attributes) {
  return ::syscall(SYS_bpf, command, &attributes, sizeof attributes);
}

BpfObject MakeBpfObject(bpf_cmd command, bpf_attr& attributes) {
  const long fd = CallBpf(command, attributes);
  if (fd < 0) return {UniqueFd(), errno};
  return {UniqueFd(static_cast<int>(fd)), 0};
}

}  // namespace

BpfObject MakeBpfMap(const BpfMapShape& shape) {
  bpf_attr attributes = BpfAttributes();
  attributes.map_type = shape.type;
  attributes.key_size = shape.key_bytes;
  attributes.value_size = shape.value_bytes;
  attributes.max_entries = shape.entries;
  return MakeBpfObject(BPF_MAP_CREATE, attributes);
}

int SetBpfMapEntry(int map, const void* key, const void* value) {
  bpf_attr attributes = BpfAttributes();
  attributes.map_fd = static_cast<uint32_t>(map);
  attributes.key = AddressOf(key);
  attributes.value = AddressOf(value);
  return CallBpf(BPF_MAP_UPDATE_ELEM, attributes) == 0 ? 0 : errno;
}

int RemoveBpfMapEntry(int map, const void* key) {
  bpf_attr attributes = BpfAttributes();
  attributes.map_fd = static_cast<uint32_t>(map);
  attributes.key = AddressOf(key);
  return CallBpf(BPF_MAP_DELETE_ELEM, attributes) == 0 ? 0 : errno;
}

BpfObject LoadXdpProgram(std::span<const bpf_insn> instructions, uint32_t flags, std::string& log) {
  bpf_attr attributes = BpfAttributes();
  attributes.prog_type = BPF_PROG_TYPE_XDP;
  attributes.insn_cnt = static_cast<uint32_t>(instructions.size());
  attributes.insns = AddressOf(instructions.data());
  attributes.license = AddressOf(kLicense);
  attributes.prog_flags = flags;
  std::memcpy(attributes.prog_name, "rocegw", sizeof "rocegw");
  BpfObject program = MakeBpfObject(BPF_PROG_LOAD, attributes);
  if (program.error == 0 || program.error == EPERM) return program;
  log.assign(kLogBytes, '\0');
  attributes.log_level = 1;
  attributes.log_buf = AddressOf(log.data());
  attributes.log_size = static_cast<uint32_t>(log.size());
  program = MakeBpfObject(BPF_PROG_LOAD, attributes);
  log.resize(std::strlen(log.c_str()));
  return program;
}

BpfObject AttachXdpProgram(int program, unsigned interface_index, uint32_t flags) {
  bpf_attr attributes = BpfAttributes();
  attributes.link_create.prog_fd = static_cast<uint32_t>(program);
  attributes.link_create.target_ifindex = interface_index;
  attributes.link_create.attach_type = BPF_XDP;
  attributes.link_create.flags = flags;
  return MakeBpfObject(BPF_LINK_CREATE, attributes);
}

}  // namespace rocegw::port
