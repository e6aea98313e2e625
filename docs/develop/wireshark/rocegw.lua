-- SPDX-License-Identifier: Apache-2.0
-- Wireshark dissector of channel packets between rocegw gateways: RoCEv2 (UDP port 4791) with BTH opcodes 0xC0 (frame),
-- 0xC1 (acknowledgement), 0xC2 (control), 0xC3 (bundle of frames and acknowledgements) and 0xC4 (sealed, with one of the
-- others inside; an encrypted one is not decrypted). Every other packet on that port goes to Wireshark's own dissector.
-- The format is described in docs/develop/wire_format.md. Load with -X lua_script:rocegw.lua or from the plugin folder.

local rocegw = Proto("rocegw", "rocegw channel")

local FRAME, ACK, CONTROL, BUNDLE, SEALED = 0xC0, 0xC1, 0xC2, 0xC3, 0xC4
local opcodes = { [FRAME] = "frame", [ACK] = "acknowledgement", [CONTROL] = "control", [BUNDLE] = "bundle",
                  [SEALED] = "sealed" }
local frame_kinds = { [0] = "void", "SEND", "WRITE", "READ request", "READ response", "compare-swap", "fetch-add",
                      "atomic result", "reply", "FLUSH", "ATOMIC WRITE", "fetch-operate" }
local operations = { "swap", "load", "store", "and", "or", "xor", "subtract" }
local control_kinds = { [0] = "open", "opened", "refused", "probe", "close", "closed", "reset", "retry" }
local reasons = { [0] = "none", "not allowed", "no resources", "unsupported", "unknown channel", "stale epoch", "idle",
                  "shutdown", "path failed", "protocol error" }
local SEND, WRITE, CAS, ADD, RESULT, REPLY, FLUSH, OPERATE = 1, 2, 5, 6, 7, 8, 9, 11
local frame_lengths = { [0] = 32, 32, 48, 48, 32, 64, 64, 40, 32, 48, 48, 64 }
local MAX_WORDS = 128
local TRAILER = 36

local f = {
  opcode = ProtoField.uint8("rocegw.opcode", "Opcode", base.HEX, opcodes),
  pad = ProtoField.uint8("rocegw.pad", "Pad count", base.DEC, nil, 0x30),
  pkey = ProtoField.uint16("rocegw.pkey", "P_Key", base.HEX),
  channel = ProtoField.uint24("rocegw.channel", "Channel", base.HEX),
  psn = ProtoField.uint24("rocegw.psn", "PSN", base.DEC),
  version = ProtoField.uint8("rocegw.version", "Version", base.DEC, nil, 0xF0),
  epoch = ProtoField.uint16("rocegw.epoch", "Receiver's epoch (low half)", base.HEX),
  icrc = ProtoField.uint32("rocegw.icrc", "ICRC", base.HEX),
  padding = ProtoField.bytes("rocegw.padding", "Padding"),

  entry = ProtoField.none("rocegw.entry", "Entry"),
  entry_opcode = ProtoField.uint8("rocegw.entry.opcode", "Opcode", base.HEX, opcodes),
  entry_psn = ProtoField.uint24("rocegw.entry.psn", "PSN", base.DEC),
  entry_reserved = ProtoField.bytes("rocegw.entry.reserved", "Reserved"),
  entry_length = ProtoField.uint16("rocegw.entry.length", "Length", base.DEC),

  kind = ProtoField.uint8("rocegw.frame.kind", "Kind", base.DEC, frame_kinds, 0x0F),
  flags = ProtoField.uint8("rocegw.frame.flags", "Flags", base.HEX),
  immediate_flag = ProtoField.bool("rocegw.frame.flags.immediate", "Immediate present", 8, nil, 0x01),
  solicited = ProtoField.bool("rocegw.frame.flags.solicited", "Solicited", 8, nil, 0x02),
  last = ProtoField.bool("rocegw.frame.flags.last", "Last frame of the message", 8, nil, 0x04),
  ordered = ProtoField.bool("rocegw.frame.flags.ordered", "Ordered", 8, nil, 0x08),
  ack_now = ProtoField.bool("rocegw.frame.flags.ack_now", "Acknowledgement wanted at once", 8, nil, 0x10),
  relaxed = ProtoField.bool("rocegw.frame.flags.relaxed", "Relaxed, or of this message alone", 8, nil, 0x20),
  invalidate_flag = ProtoField.bool("rocegw.frame.flags.invalidate", "Key to invalidate present", 8, nil, 0x40),
  endpoint_flag = ProtoField.bool("rocegw.frame.flags.endpoint", "For an endpoint, by its key", 8, nil, 0x80),
  tenant = ProtoField.uint32("rocegw.frame.tenant", "Tenant", base.HEX),
  destination = ProtoField.uint24("rocegw.frame.destination", "Destination endpoint", base.HEX),
  syndrome = ProtoField.uint8("rocegw.frame.syndrome", "Syndrome", base.HEX),
  source = ProtoField.uint24("rocegw.frame.source", "Source endpoint", base.HEX),
  attempt = ProtoField.uint8("rocegw.frame.attempt", "Attempt", base.DEC),
  reserved = ProtoField.bytes("rocegw.reserved", "Reserved"),
  message = ProtoField.uint32("rocegw.frame.message", "Message number", base.DEC),
  offset = ProtoField.uint32("rocegw.frame.offset", "Offset", base.DEC),
  length = ProtoField.uint32("rocegw.frame.length", "Message length", base.DEC),
  receive = ProtoField.uint32("rocegw.frame.receive", "Receive number", base.DEC),
  address = ProtoField.uint64("rocegw.frame.address", "Remote address", base.HEX),
  rkey = ProtoField.uint32("rocegw.frame.rkey", "R_Key", base.HEX),
  immediate = ProtoField.uint32("rocegw.frame.immediate", "Immediate", base.HEX),
  invalidate = ProtoField.uint32("rocegw.frame.invalidate", "Key to invalidate", base.HEX),
  swap_or_add = ProtoField.uint64("rocegw.frame.swap_or_add", "Swap, add or operand", base.HEX),
  operation = ProtoField.uint32("rocegw.frame.operation", "Operation", base.DEC, operations),
  feth = ProtoField.uint32("rocegw.frame.feth", "Placement type, selectivity level << 4", base.HEX),
  compare = ProtoField.uint64("rocegw.frame.compare", "Compare", base.HEX),
  original = ProtoField.uint64("rocegw.frame.original", "Original value", base.HEX),
  payload = ProtoField.bytes("rocegw.frame.payload", "Payload"),

  ack_kind = ProtoField.uint8("rocegw.ack.kind", "Kind", base.DEC, nil, 0x0F),
  ack_flags = ProtoField.uint8("rocegw.ack.flags", "Flags", base.HEX),
  marked = ProtoField.uint32("rocegw.ack.marked_bytes", "Marked bytes", base.DEC),
  hint = ProtoField.uint8("rocegw.ack.hint", "Congestion hint", base.DEC),
  room = ProtoField.uint24("rocegw.ack.room", "Room (packets)", base.DEC),
  held = ProtoField.uint32("rocegw.ack.held", "Held (ns)", base.DEC),
  ack_probe = ProtoField.uint32("rocegw.ack.probe", "Probe answered", base.DEC),
  duplicates = ProtoField.uint8("rocegw.ack.duplicates", "Duplicates", base.DEC),
  words = ProtoField.uint16("rocegw.ack.words", "Bitmap words", base.DEC),
  bitmap = ProtoField.uint32("rocegw.ack.bitmap", "Arrived", base.HEX),

  control_kind = ProtoField.uint8("rocegw.control.kind", "Kind", base.DEC, control_kinds, 0x0F),
  control_flags = ProtoField.uint8("rocegw.control.flags", "Flags", base.HEX),
  control_channel = ProtoField.uint24("rocegw.control.channel", "Sender's channel", base.HEX),
  reason = ProtoField.uint8("rocegw.control.reason", "Reason", base.DEC, reasons),
  own_epoch = ProtoField.uint32("rocegw.control.epoch", "Sender's epoch", base.HEX),
  peer_epoch = ProtoField.uint32("rocegw.control.peer_epoch", "Receiver's epoch", base.HEX),
  initial_psn = ProtoField.uint24("rocegw.control.initial_psn", "Initial PSN", base.DEC),
  traffic_class = ProtoField.uint8("rocegw.control.traffic_class", "Traffic class", base.HEX),
  window = ProtoField.uint24("rocegw.control.window", "Window (packets)", base.DEC),
  path = ProtoField.uint8("rocegw.control.path", "Path", base.DEC),
  features = ProtoField.uint32("rocegw.control.features", "Features", base.HEX),
  cc = ProtoField.uint8("rocegw.control.cc", "Congestion control", base.DEC),
  checksum = ProtoField.uint8("rocegw.control.checksum", "Checksum mode", base.DEC),
  worker = ProtoField.uint16("rocegw.control.worker", "Worker", base.DEC),
  probe = ProtoField.uint32("rocegw.control.probe", "Probe", base.DEC),
  instance = ProtoField.uint32("rocegw.control.instance", "Gateway instance", base.HEX),
  tagged = ProtoField.bool("rocegw.control.tagged", "Tagged", 8, nil, 0x01),
  sequence = ProtoField.uint64("rocegw.control.sequence", "Sequence", base.DEC),
  tag = ProtoField.uint64("rocegw.control.tag", "Tag", base.HEX),
  seals = ProtoField.bool("rocegw.control.seals", "Seals", 8, nil, 0x02),
  salt = ProtoField.bytes("rocegw.control.salt", "Salt"),
  encrypts = ProtoField.bool("rocegw.control.encrypts", "Wants encryption", 8, nil, 0x01),

  inner = ProtoField.uint8("rocegw.seal.opcode", "Opcode of the content", base.HEX, opcodes),
  seal_version = ProtoField.uint8("rocegw.seal.version", "Version", base.DEC, nil, 0xF0),
  seal_pad = ProtoField.uint8("rocegw.seal.pad", "Pad count of the content", base.DEC, nil, 0x0C),
  encrypted = ProtoField.bool("rocegw.seal.encrypted", "Encrypted", 8, nil, 0x01),
  seal_channel = ProtoField.uint24("rocegw.seal.channel", "Sender's channel", base.HEX),
  key = ProtoField.uint32("rocegw.seal.key", "Key of the fleet", base.HEX),
  seal_sequence = ProtoField.uint64("rocegw.seal.sequence", "Sequence", base.DEC),
  seal_tag = ProtoField.bytes("rocegw.seal.tag", "Tag"),
  cipher = ProtoField.bytes("rocegw.seal.cipher", "Encrypted content"),
}
rocegw.fields = f

local malformed = ProtoExpert.new("rocegw.malformed", "Malformed channel packet", expert.group.MALFORMED,
                                  expert.severity.ERROR)
rocegw.experts = { malformed }

local function add(tree, extension, rows)
  for _, row in ipairs(rows) do tree:add(row[1], extension(row[2], row[3])) end
end

local function words(list)
  return " " .. table.concat(list, " ")
end

-- Behind address and key.
local words_of = { [WRITE] = f.immediate, [FLUSH] = f.feth, [OPERATE] = f.operation }

-- Each returns the text of the info column, or nil and what is wrong.
local function dissect_frame(body, tree)
  if body:len() < 32 then return nil, "shorter than a frame's header" end
  local kind, flags = body(0, 1):bitfield(4, 4), body(1, 1):uint()
  local length = frame_lengths[kind]
  if not length then return nil, "undefined kind" end
  local has_immediate, has_invalidate = flags % 2 == 1, body(1, 1):bitfield(1, 1) == 1
  if kind == SEND and (has_immediate or has_invalidate) then length = 36 end
  if body:len() < length then return nil, "shorter than its kind's header" end
  tree:add(f.kind, body(0, 1))
  local flag_tree = tree:add(f.flags, body(1, 1))
  for _, field in ipairs({ f.immediate_flag, f.solicited, f.last, f.ordered, f.ack_now, f.relaxed, f.invalidate_flag, f.endpoint_flag }) do
    flag_tree:add(field, body(1, 1))
  end
  add(tree, body, { { f.epoch, 2, 2 }, { f.tenant, 4, 4 }, { f.destination, 8, 3 }, { f.syndrome, 11, 1 },
                    { f.source, 12, 3 }, { f.attempt, 15, 1 }, { f.message, 16, 4 }, { f.offset, 20, 4 },
                    { f.length, 24, 4 }, { f.receive, 28, 4 } })
  if frame_lengths[kind] >= 48 then
    add(tree, body, { { f.address, 32, 8 }, { f.rkey, 40, 4 }, { words_of[kind] or f.reserved, 44, 4 } })
  end
  if kind == CAS or kind == ADD or kind == OPERATE then
    add(tree, body, { { f.swap_or_add, 48, 8 }, { f.compare, 56, 8 } })
  end
  if kind == RESULT then tree:add(f.original, body(32, 8)) end
  if kind == SEND and length == 36 then tree:add(has_immediate and f.immediate or f.invalidate, body(32, 4)) end
  if body:len() > length then tree:add(f.payload, body(length)) end
  local info = { frame_kinds[kind] }
  if kind ~= 0 then
    info[#info + 1] = string.format("0x%06x > 0x%06x msg=%u", body(12, 3):uint(), body(8, 3):uint(), body(16, 4):uint())
    if kind == REPLY then
      info[#info + 1] = string.format("syndrome=0x%02x", body(11, 1):uint())
    else
      info[#info + 1] = string.format("off=%u len=%u", body(20, 4):uint(), body(24, 4):uint())
    end
  end
  return words(info)
end

local function dissect_ack(body, tree)
  if body:len() < 24 then return nil, "shorter than an acknowledgement" end
  local count = body(20, 2):uint()
  if count > MAX_WORDS or body:len() ~= 24 + count * 4 then return nil, "bitmap words and length do not fit" end
  add(tree, body, { { f.ack_kind, 0, 1 }, { f.ack_flags, 1, 1 }, { f.epoch, 2, 2 }, { f.marked, 4, 4 }, { f.hint, 8, 1 },
                    { f.room, 9, 3 }, { f.held, 12, 4 }, { f.ack_probe, 16, 4 }, { f.words, 20, 2 },
                    { f.duplicates, 22, 1 }, { f.reserved, 23, 1 } })
  for i = 0, count - 1 do tree:add(f.bitmap, body(24 + i * 4, 4)) end
  return string.format(" acknowledgement room=%u words=%u", body(9, 3):uint(), count)
end

local function dissect_control(body, tree)
  if body:len() < 40 then return nil, "shorter than a control packet" end
  local tagged, seals = body(1, 1):bitfield(7, 1) == 1, body(1, 1):bitfield(6, 1) == 1
  local tail = 40 + (seals and 20 or 0)
  if body:len() ~= tail + (tagged and 16 or 0) then return nil, "flags and length do not fit" end
  local kind = body(0, 1):bitfield(4, 4)
  if not control_kinds[kind] then return nil, "undefined kind" end
  add(tree, body, { { f.control_kind, 0, 1 }, { f.control_flags, 1, 1 }, { f.epoch, 2, 2 }, { f.control_channel, 4, 3 },
                    { f.reason, 7, 1 }, { f.own_epoch, 8, 4 }, { f.peer_epoch, 12, 4 }, { f.initial_psn, 16, 3 },
                    { f.traffic_class, 19, 1 }, { f.window, 20, 3 }, { f.path, 23, 1 }, { f.features, 24, 4 },
                    { f.cc, 28, 1 }, { f.checksum, 29, 1 }, { f.worker, 30, 2 }, { f.probe, 32, 4 },
                    { f.instance, 36, 4 }, { f.tagged, 1, 1 }, { f.seals, 1, 1 } })
  if seals then add(tree, body, { { f.salt, 40, 16 }, { f.encrypts, 56, 1 } }) end
  if tagged then add(tree, body, { { f.sequence, tail, 8 }, { f.tag, tail + 8, 8 } }) end
  return words({ control_kinds[kind], string.format("channel=0x%06x", body(4, 3):uint()) })
end

local dissectors = { [FRAME] = dissect_frame, [ACK] = dissect_ack, [CONTROL] = dissect_control }

-- Dissects what every extension begins with, then the rest.
local function dissect_extension(opcode, body, tree)
  if body:len() < 4 then return nil, "shorter than an extension" end
  tree:add(f.version, body(0, 1))
  if body(0, 1):bitfield(0, 4) ~= 1 then return nil, "unknown version" end
  return dissectors[opcode](body:tvb(), tree)
end

local function dissect_bundle(content, tree)
  local at, count, total = 0, 0, content:len()
  while at < total do
    if total - at < 8 then return nil, "shorter than an entry's header" end
    local opcode, length = content(at, 1):uint(), content(at + 6, 2):uint()
    local padded = math.floor((length + 3) / 4) * 4
    if opcode ~= FRAME and opcode ~= ACK then return nil, "entry is no frame and no acknowledgement" end
    if length == 0 or padded > total - at - 8 then return nil, "length of an entry does not fit" end
    local entry = tree:add(f.entry, content(at, 8 + padded))
    add(entry, content, { { f.entry_opcode, at, 1 }, { f.entry_psn, at + 1, 3 }, { f.entry_reserved, at + 4, 2 },
                          { f.entry_length, at + 6, 2 } })
    local text, wrong = dissect_extension(opcode, content(at + 8, length), entry)
    if not text then return nil, wrong end
    entry:append_text(text)
    if padded > length then entry:add(f.padding, content(at + 8 + length, padded - length)) end
    at, count = at + 8 + padded, count + 1
  end
  if count < 2 then return nil, "fewer than two entries" end
  return string.format(" %d entries", count)
end

local function dissect_sealed(body, tree)
  local size = body:len() - TRAILER
  if size < 4 then return nil, "shorter than a seal" end
  local inner, flags = body(size, 1):uint(), body(size + 1, 1)
  if inner ~= FRAME and inner ~= ACK and inner ~= BUNDLE then return nil, "content cannot be sealed" end
  if flags:bitfield(0, 4) ~= 1 then return nil, "unknown version" end
  add(tree, body, { { f.inner, size, 1 }, { f.seal_version, size + 1, 1 }, { f.seal_pad, size + 1, 1 },
                    { f.encrypted, size + 1, 1 }, { f.epoch, size + 2, 2 }, { f.seal_channel, size + 4, 3 },
                    { f.reserved, size + 7, 1 }, { f.key, size + 8, 4 }, { f.seal_sequence, size + 12, 8 },
                    { f.seal_tag, size + 20, 16 } })
  local text = string.format(" sealed %u", body(size + 16, 4):uint())
  if flags:bitfield(7, 1) == 1 then
    tree:add(f.cipher, body(0, size))
    return text .. " encrypted " .. opcodes[inner]
  end
  local content = body(0, size - flags:bitfield(4, 2))
  local inside, wrong
  if inner == BUNDLE then
    inside, wrong = dissect_bundle(content, tree)
  else
    inside, wrong = dissect_extension(inner, content, tree)
  end
  return inside and text .. inside, wrong
end

local function dissect(tvb, pinfo, root)
  local opcode = tvb(0, 1):uint()
  pinfo.cols.protocol = "rocegw"
  local tree = root:add(rocegw, tvb(), "rocegw channel, " .. opcodes[opcode])
  add(tree, tvb, { { f.opcode, 0, 1 }, { f.pad, 1, 1 }, { f.pkey, 2, 2 }, { f.channel, 5, 3 }, { f.psn, 9, 3 } })
  local pad = tvb(1, 1):bitfield(2, 2)
  -- A capture may hold the beginning of a packet only, without pad and ICRC.
  local cut = tvb:captured_len() < tvb:reported_len()
  local size = cut and tvb:captured_len() - 12 or tvb:len() - 16 - pad
  local text, wrong = nil, "shorter than BTH, pad and ICRC"
  if size >= 4 then
    local body = tvb(12, size)
    if opcode == BUNDLE then
      text, wrong = dissect_bundle(body, tree)
    elseif opcode == SEALED then
      text, wrong = dissect_sealed(body, tree)
    else
      text, wrong = dissect_extension(opcode, body, tree)
    end
    if cut then
      text = text or " cut short by the capture"
    else
      if pad > 0 then tree:add(f.padding, tvb(12 + size, pad)) end
      tree:add(f.icrc, tvb(tvb:len() - 4, 4))
    end
  end
  local where = string.format("channel 0x%06x psn %u", tvb(5, 3):uint(), tvb(9, 3):uint())
  pinfo.cols.info = where .. (text or "")
  if not text then tree:add_proto_expert_info(malformed, wrong) end
  return tvb:len()
end

local ports = DissectorTable.get("udp.port")
local native = ports:get_dissector(4791)

function rocegw.dissector(tvb, pinfo, root)
  if tvb:len() >= 16 and opcodes[tvb(0, 1):uint()] then return dissect(tvb, pinfo, root) end
  return native and native:call(tvb, pinfo, root) or 0
end

ports:add(4791, rocegw)
