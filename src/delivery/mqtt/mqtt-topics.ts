import { eventTypes, type EventType } from '../../messages/cloud-event.js'

/** Every topic of a broker that we write to. */
export class MqttTopics {
  /** @param prefix - `topicPrefix` of the settings */
  constructor(readonly prefix: string) {}

  /** Retained: `online`, and `offline` by the last will. */
  get status(): string {
    return `${this.prefix}/status`
  }

  /** Retained. */
  stateOf(cameraId: string): string {
    return `${this.prefix}/cameras/${cameraId}/state`
  }

  recordsOf(cameraId: string, type: EventType): string {
    return `${this.prefix}/cameras/${cameraId}/${type === eventTypes.detections ? 'detections' : 'events'}`
  }
}

export const statusPayloads = { up: 'online', down: 'offline' } as const
