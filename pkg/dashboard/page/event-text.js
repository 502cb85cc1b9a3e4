// SPDX-License-Identifier: Apache-2.0
// Reads the text of a stream of server-sent events, which comes in pieces.

// unread is what a stream has at first: `rest` is an event that is not whole, and `id` is how far the stream has come.
export const unread = {rest: '', id: ''};

// read takes a piece and returns what is left with the events that are whole now, each with its name and data. What has
// no data is no event: such a line shows that the stream is alive, and moves the id on.
export function read({rest, id}, piece) {
  const blocks = (rest + piece).replaceAll('\r\n', '\n').split('\n\n'),
    events = [];
  rest = blocks.pop();
  for (const block of blocks) {
    const event = {name: 'message', data: []};
    for (const line of block.split('\n')) {
      const [, field, value] = line.match(/^([^:]*):? ?(.*)$/s);
      if (field === 'id') id = value;
      else if (field === 'event') event.name = value;
      else if (field === 'data') event.data.push(value);
    }
    if (event.data.length > 0) events.push({name: event.name, data: event.data.join('\n')});
  }
  return [{rest, id}, events];
}
